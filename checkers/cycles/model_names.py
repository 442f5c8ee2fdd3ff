"""Other names of consistency models: those that mean one of ``models.MODELS``, and those that are not judged.

Adya's and Elle's names mean a model here if both forbid the same anomalies of items. PL-2+ forbids G1 and G-single.
Parallel snapshot isolation is the same: two transactions that update one version are a lost update, and then one of
them misses the other's write, a G-single. ``causal-cerone`` is Elle's name of the causal model of Cerone, Bernardi and
Gotsman, which is ``causal`` here.

``NOT_JUDGED`` has the other models of Elle (``elle.consistency-model``), each between the nearest models that are
judged. Elle accepts these names, but it searches for a part of their anomalies only: for cursor stability for G1 and
lost updates, for update serializability for those of PL-2+, and for PRAM for none.

PRAM lets processes disagree about the order of other processes' writes. Its version order would be one for each
process, which no model here has. The session guarantees of ``guarantees`` have one order for all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

SAME: Final[Mapping[str, str]] = MappingProxyType(
    {
        "PL-1": "read-uncommitted",
        "PL-2": "read-committed",
        "PL-2+": "parallel-snapshot-isolation",
        "consistent-view": "parallel-snapshot-isolation",
        "psi": "parallel-snapshot-isolation",
        "causal-cerone": "causal",
        "PL-SI": "snapshot-isolation",
        "si": "snapshot-isolation",
        "PL-2.99": "repeatable-read",
        "PL-3": "serializable",
        "conflict-serializable": "serializable",
        "PL-SS": "strict-serializable",
        "strong-session-PL-1": "strong-session-read-uncommitted",
        "strong-session-PL-2": "strong-session-read-committed",
        "strong-PL-1": "strong-read-uncommitted",
        "strong-PL-2": "strong-read-committed",
    }
)
"""By another name, the model that it means."""


@dataclass(frozen=True, slots=True)
class NotJudged:
    """A model that is not judged, and the nearest ones that are."""

    stronger: str
    weaker: str | None = None
    """None: no model that is judged is weaker."""


_CURSOR_STABILITY: Final = NotJudged("parallel-snapshot-isolation", "read-committed")
_FORWARD_VIEW: Final = NotJudged("snapshot-isolation", "parallel-snapshot-isolation")
_MONOTONIC_SNAPSHOT: Final = NotJudged("snapshot-isolation", "read-committed")
_UPDATE: Final = NotJudged("serializable", "parallel-snapshot-isolation")

NOT_JUDGED: Final[Mapping[str, NotJudged]] = MappingProxyType(
    {
        "cursor-stability": _CURSOR_STABILITY,
        "PL-CS": _CURSOR_STABILITY,
        "monotonic-view": _CURSOR_STABILITY,
        "PL-2L": _CURSOR_STABILITY,
        "update-atomic": NotJudged("parallel-snapshot-isolation", "read-atomic"),
        "monotonic-snapshot-read": _MONOTONIC_SNAPSHOT,
        "PL-MSR": _MONOTONIC_SNAPSHOT,
        "prefix": NotJudged("snapshot-isolation", "causal"),
        "forward-consistent-view": _FORWARD_VIEW,
        "PL-FCV": _FORWARD_VIEW,
        "update-serializable": _UPDATE,
        "PL-3U": _UPDATE,
        "view-serializable": NotJudged("serializable"),
        "1SR": NotJudged("serializable"),
        "session-serializable": NotJudged("strong-session-serializable"),
        "sequential": NotJudged("strong-session-serializable"),
        "linearizable": NotJudged("strict-serializable"),
        "PRAM": NotJudged("strong-session-causal"),
    }
)
"""Elle's other models."""


def why_not(name: str) -> str | None:
    """Return a sentence about a model that is not judged; None for other names."""
    model = NOT_JUDGED.get(name)
    if model is None:
        return None
    weaker = f"the nearest weaker one is {model.weaker}" if model.weaker else "no weaker one is"
    return (
        f"the consistency model {name} is not judged: "
        f"the nearest stronger model that is judged is {model.stronger}, and {weaker}"
    )
