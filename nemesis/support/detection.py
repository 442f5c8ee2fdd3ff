"""Which faults of a plan are too short for a cluster to notice: shorter than the time-out that would reveal them.

A fault that nothing notices leads to no election and no change of an ISR, so a run of such faults proves little. Only
kinds are judged whose detection is a time-out; a fault that acts at once, such as the end of a session, is detectable.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

SESSION: Final = "zookeeper.session.timeout.ms"
LAG: Final = "replica.lag.time.max.ms"
MEMBER_SESSION: Final = "session.timeout.ms"
REVEALED_BY: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "kill": (SESSION,),
        "kill-controller": (SESSION,),
        "pause": (SESSION, LAG),
        "partition": (SESSION, LAG),
        "stall-follower": (LAG,),
        "pause-client": (MEMBER_SESSION,),
    }
)
"""By the kind of fault, the settings whose time-outs reveal it; the shortest one counts.

Only groups of consumers notice that a client pauses: a run without them does not have the setting.
"""


def undetectable(plan: Iterable[Mapping[str, Any]], timeouts_ms: Mapping[str, int]) -> list[str]:
    """Return a phrase for each fault of a plan, as a plan file states it, that no time-out reveals."""
    phrases = []
    for planned in plan:
        known = [name for name in REVEALED_BY.get(planned["fault"], ()) if name in timeouts_ms]
        revealing = min(known, key=lambda name: timeouts_ms[name], default=None)
        if revealing is None:
            continue
        duration_ms = 1000 * float(planned.get("duration_s", 0))
        if duration_ms < timeouts_ms[revealing]:
            phrases.append(
                f"{planned['fault']} at {planned['at_s']:g} s lasts {duration_ms / 1000:g} s, "
                f"{revealing} is {timeouts_ms[revealing]}"
            )
    return phrases
