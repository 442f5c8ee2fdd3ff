"""Reports: what a run came to, for a person (HTML), for a build server (JUnit) and for programs (JSON).

Findings are data that checkers made; this package only renders them, and draws the history beside them.

* ``html``      the page: start here. ``templates/`` holds its markup, style and script
* ``figures``   series to charts
* ``charts``    charts over time, drawn as SVG
* ``diagram``   the messages between the nodes around a finding, as a sequence diagram
* ``strip``     the run at a glance: brokers over time (``terms`` of controllers, ``states`` for the slider)
* ``pictures``    what is drawn beside a finding
* ``client_lanes``  what clients did around a finding, a lane for each client (``lanes``: bars in lanes)
* ``cycle_graph``   a cycle of transactions as a graph
* ``stories``     what stands behind names: properties, Kafka's issues, and what shrinking removed
* ``values``      how times, sessions and zxids are written
* ``shown``       what a page shows of a history under any verdict
* ``series``    history to series: faults, phases, controllers, partitions (``clients``: operations)
* ``liveness``   how long what was missing: strokes over time, and a table for each kind of fault
* ``run_axis``        lanes of bars on the time axis, for the two below
* ``consumer_groups``  generations, rebalances and owners of partitions, in runs with groups
* ``transactions``    transactions of each producer, and what held the last stable offset
* ``containers``  which node was which container, of a run in containers
* ``marks``       faults, phases and findings, drawn behind every chart
* ``sampling``  fewer points that draw the same line
* ``template_cache``  compiled templates, kept for the next report
* ``wording``   what each property promises, and how values are written
* ``junit``     one test case per property

``write`` does all three. Imports of ours: ``history`` and ``checkers``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from nemesis.checkers.framework.model import Outcome
from nemesis.history.run_directory import RunDirectory, RunInfo, write_atomically

if TYPE_CHECKING:
    from nemesis.reports.shown import Shown

__all__ = ["RENDERER", "Results", "read_shown", "write"]

RENDERER: Final = "nemesis.reports.html"
"""The module whose import takes longest. ``write`` imports it; another thread may do so before."""


class Results(Outcome, frozen=True, kw_only=True):
    """What ``results.json`` holds: the outcome, and what was run. Reads as an ``Outcome`` too."""

    run: RunInfo


def read_shown(run: RunDirectory) -> Shown:
    """Return what the page shows of the run's history. Raises HistoryError when it cannot be read."""
    # Imported here: templates and pictures take a tenth of a second, and what a console says needs none.
    from nemesis.reports.shown import read

    return read(run.history)


def write(
    run: RunDirectory,
    outcome: Outcome,
    notes: Sequence[str] = (),
    *,
    story: str = "",
    shown: Shown | None = None,
) -> None:
    """Write ``results.json``, ``junit.xml`` and ``report.html`` into the run's directory.

    ``notes`` are sentences about the run that no verdict depends on; the page has them. ``story`` is what is wrong
    with a planted bug. ``shown``: what ``read_shown`` returned, if another thread has read it already.

    Each file is replaced in one step, in this order. Raises HistoryError when ``run.json`` or the ingested
    history cannot be read, before anything is written; OSError when the directory cannot be written.
    """
    info = run.read_info()
    from nemesis.reports.containers import containers
    from nemesis.reports.html import render as render_page
    from nemesis.reports.junit import render as render_junit

    shown = read_shown(run) if shown is None else shown
    page = render_page(info, outcome, shown, containers(run.path), notes, story)
    fields = {name: getattr(outcome, name) for name in outcome.__struct_fields__}
    results = msgspec.json.encode(Results(**{**fields, "run": info}))
    write_atomically(run.results_file, msgspec.json.format(results) + b"\n")
    write_atomically(run.junit_file, render_junit(info, outcome))
    write_atomically(run.report_file, page.encode())
