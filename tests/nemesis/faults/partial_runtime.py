"""A runtime of the parts that a test gives it; the others are unsupported."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from nemesis.interfaces.runtime import Runtime
from nemesis.interfaces.unsupported import Unsupported

PARTS = ("network", "processes", "disks", "clocks", "ensemble", "packets")
MISSING = Unsupported("this test has no such part")


def runtime_of(cluster: Any, **parts: Any) -> Runtime:
    """Return a runtime of this cluster and these parts; objects with the methods that the test needs are enough."""
    both = dict.fromkeys(PARTS, MISSING) | parts
    return cast("Runtime", SimpleNamespace(name="partial", cluster=cluster, **both))
