"""Which fault can be done on which runtime, on a machine that has everything.

Derived from what a fault needs and what a runtime has on no machine. What a machine lacks is found before the run
(``nemesis.running.preflight``).
"""

from __future__ import annotations

from nemesis.faults import FAULTS
from nemesis.faults.base import Fault
from nemesis.interfaces.runtime import first_missing
from nemesis.interfaces.unsupported import Unsupported
from nemesis.runtimes.kinds import RUNTIMES


def obstacles(kind: type[Fault]) -> dict[str, Unsupported | None]:
    """Return for each runtime why it cannot do this fault; None where it can."""
    return {
        name: first_missing(kind.needs, runtime.unsupported()) for name, runtime in RUNTIMES.items()
    }


def kinds_of(runtime: str) -> list[str]:
    """Return the faults that a runtime can do."""
    return [name for name, kind in FAULTS.items() if obstacles(kind)[runtime] is None]


def runtimes_of(kind: type[Fault]) -> list[str]:
    """Return the runtimes that can do this fault."""
    return [name for name, obstacle in obstacles(kind).items() if obstacle is None]
