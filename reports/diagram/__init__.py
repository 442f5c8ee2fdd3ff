"""The message diagram of a finding: who told whom what, around the events that prove it.

A sequence diagram, made from the events of a history alone: nodes are columns, time runs downwards, one row per event.

* ``gather``   which events of a history lie near the proof
* ``items``    what is drawn: messages (arrows) and notes, with how much they matter
* ``compose``  events to items: a request sent and handled, a write attempted and committed, a record on its way
* ``say``      the text of a row
* ``select``   the items that fit on a page, those that matter most
* ``svg``      items to an SVG; its style is ``reports/templates/diagram.css``

``message_diagrams`` does it all.
"""

from __future__ import annotations

from collections.abc import Sequence

from nemesis.checkers.framework.model import Finding
from nemesis.history.reader import History
from nemesis.reports.diagram.compose import compose
from nemesis.reports.diagram.gather import ProofTimes, ZxidClock, gather, session_owners
from nemesis.reports.diagram.select import select
from nemesis.reports.diagram.svg import draw

__all__ = ["message_diagrams"]


def message_diagrams(
    history: History, findings: Sequence[Finding], *, origin_ns: int
) -> list[str | None]:
    """Return each finding's diagram as an ``<svg>`` element; None when no event that proves it has a time.

    ``origin_ns``: from where the diagrams count their seconds. Raises HistoryError when the history cannot be read.
    """
    if not findings:
        return []
    clock, owners = ZxidClock.of(history), session_owners(history)
    return [
        _diagram(history, ProofTimes.of(finding, clock, owners), origin_ns) for finding in findings
    ]


def _diagram(history: History, instants: ProofTimes, origin_ns: int) -> str | None:
    if not instants.proof_times:
        return None
    scene = select(compose(gather(history, instants), instants), instants)
    return draw(scene, instants, origin_ns)
