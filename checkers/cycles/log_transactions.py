"""Transactions over logs: what of their order do the logs themselves show?

Of two records of a log the one at the smaller offset was appended first (ww), and who polled a record came after its
sender (wr). A poll that did not return a record says nothing (it may lag), so there are no anti-dependencies.

* **G1c**: transactions polled each other's records, in a circle; with the order of each process (``G1c-process``) or
  real time (``G1c-realtime``) also where that closes the circle. Who reads what is committed is given no such
  records; who reads uncommitted may be: that is the consistency model ``read-uncommitted``.
  Smallest break: T1 sends 1 and polls 2, T2 sends 2 and polls 1.
* **precommitted-read**: a transaction polled a record that it sends itself. Consumers are given what is committed,
  and a transaction commits after its last poll: so no later one explains it. It is a G1c of a single transaction, and
  allowed under ``read-uncommitted``, too. Smallest break: T1 sends 1 and polls 1.
* **G0**, and **G1c** whose circle needs an order of appends: reported, and allowed. Kafka does not isolate the appends
  of transactions that are under way together (KIP-98): a partition may have the first one's record, the second one's,
  and another one of the first.

Each send or poll by itself counts as a transaction, too. A transaction in doubt has committed if a record of it was
polled; then it comes before who polled the record, and after the senders of what it reports to have polled. When it
ended is unknown. Of one that no poll shows nothing follows, because no transaction comes after it. A send without a
completion is in doubt, too. Limits: a value that
was sent twice to a log is left out (``duplicate`` tells of it); all sends and polls fit into memory, and one task
judges them. Source: jepsen.tests.kafka, for what logs tell of transactions.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import Final, Self

from nemesis.checkers.breaks import logs as breaks
from nemesis.checkers.cycles.asked_anomalies import model_asked
from nemesis.checkers.cycles.check import ANOMALY_PROPERTIES
from nemesis.checkers.cycles.log_rows import LogRows
from nemesis.checkers.cycles.models import SERIALIZABLE, Level, Model
from nemesis.checkers.framework.asked import Asked
from nemesis.checkers.framework.fold import GlobalCheck, Results, conclude
from nemesis.checkers.framework.model import Finding
from nemesis.checkers.framework.property import Property
from nemesis.checkers.framework.segment import Segment
from nemesis.history.events import Kind

PRECOMMITTED: Final = "precommitted-read"
NAMES: Final = ("G0", "G1c", "G1c-process", "G1c-realtime")
ALLOWED: Final = (
    "Kafka does not isolate appends of transactions that are under way together, and allows that."
)
BY_APPENDS: Final = {
    "G0": "by the order of their appends",
    "G1c": "by the order of their appends and who polled them",
}
BY_POLLS: Final = {
    "G1c": "by who polled what they sent",
    "G1c-process": "by who polled what they sent, and by the order of a process",
    "G1c-realtime": "by who polled what they sent, and by real time",
}


class LogTransactions(GlobalCheck[LogRows]):
    kinds = frozenset({Kind.INVOKE, Kind.OK, Kind.FAIL, Kind.INFO})
    columns = ("f", "op", "value", "offset", "offsets", "values", "topic")

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return _PROPERTIES

    def __init__(self, model: Model = SERIALIZABLE) -> None:
        self.model = model

    @classmethod
    def made_for(cls, asked: Asked) -> Self:
        return cls(model_asked(asked))

    def part(self, segment: Segment) -> LogRows:
        return LogRows.of(segment)

    def judge(self, parts: list[LogRows]) -> Results:
        rows = LogRows.joined(parts)
        if not len(rows.op):
            return [conclude(decided, checked=0) for decided in _PROPERTIES]
        # numba takes half a second to import, which a history without transactions need not wait for.
        from nemesis.checkers.cycles.log_analysis import LogAnalysis
        from nemesis.checkers.cycles.log_explain import LogExplainer

        analysis = LogAnalysis.of(rows)
        explainer = LogExplainer(analysis)
        findings: dict[str, list[Finding]] = defaultdict(list)
        allowed = (
            "" if self.model.level >= Level.G1 else f"The model {self.model.name} allows that."
        )
        for cycle in analysis.cycles_of_polls():
            findings[cycle.name].append(explainer.tell(cycle, BY_POLLS[cycle.name], allowed))
        for polled in analysis.precommitted().tolist():
            findings[PRECOMMITTED].append(explainer.precommitted(PRECOMMITTED, polled, allowed))
        for cycle in analysis.cycles_of_appends():
            findings[cycle.name].append(explainer.tell(cycle, BY_APPENDS[cycle.name], ALLOWED))
        return [
            conclude(
                decided,
                checked=len(analysis.placed) if decided.name == "G0" else analysis.polls_known,
                findings=findings[decided.name],
            )
            for decided in _PROPERTIES
        ]


_OF_CYCLES: Final = tuple(
    replace(
        ANOMALY_PROPERTIES[name],
        unit="acknowledged sends" if name == "G0" else "records polled",
        unknown="No send was acknowledged." if name == "G0" else "No poll returned a record.",
        source="The kafka workload of jepsen.tests; KIP-98.",
        check=LogTransactions,
        is_self_evident=True,
        breaks=breaks.CYCLES[name],
    )
    for name in NAMES
)
_PROPERTIES: Final = (
    *_OF_CYCLES,
    replace(
        _OF_CYCLES[1],
        name=PRECOMMITTED,
        promise="No transaction polls a record that it sends itself.",
        breaks=breaks.PRECOMMITTED_READ,
    ),
)
