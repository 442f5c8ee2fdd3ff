"""The message diagram of a finding: who told whom what, around the events that prove it.

A sequence diagram, made from the events of a history alone: nodes are columns, time runs downwards, one row per event.

* ``gather``   which events of a history lie near the proof
* ``items``    what is drawn: messages (arrows) and notes, with how much they matter
* ``compose``  events to items: a request sent and handled, a write attempted and committed, a record on its way
* ``say``      the text of a row
* ``select``   the items that fit on a page, those that matter most
* ``svg``      items to an SVG; its style is ``reports/templates/diagram.css``

``message_diagram`` does it all.
"""

from __future__ import annotations

from nemesis.history.reader import History
from nemesis.reports.diagram.compose import compose
from nemesis.reports.diagram.gather import ProofTimes, gather
from nemesis.reports.diagram.select import select
from nemesis.reports.diagram.svg import draw

__all__ = ["message_diagram"]


def message_diagram(history: History, instants: ProofTimes, origin_ns: int) -> str | None:
    """Return the diagram of a finding as an ``<svg>`` element; None when no event that proves it has a time.

    ``origin_ns``: from where the diagram counts its seconds. Raises HistoryError when the history cannot be read.
    """
    if not instants.proof_times:
        return None
    scene = select(compose(gather(history, instants), instants), instants)
    return draw(scene, instants, origin_ns)
