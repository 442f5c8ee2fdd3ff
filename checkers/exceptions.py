"""No broker raises an exception that its own code does not foresee.

**no-unforeseen-exception**: no broker has caught an exception that none of its code expects, and none has ended because
of one. A broker survives most of them: the request is answered with UNKNOWN_SERVER_ERROR, the job runs again, the
fetcher stops. A client need not notice it, yet what the exception skipped was never done.
Smallest break: one ``unforeseen-exception`` event.

What a correct cluster does and is not convicted for: an exception that a broker foresees is not traced.
Cancelled tasks, broken connections, refused requests, failed disks and a refused start are foreseen
(``nemesis.reference.exception_trace``).

Limit: brokers of older versions traced no exceptions, so runs of older formats are left out. Each broker that does
traces ``exceptions-watched`` when it has started; a history without any is ``unknown``. An error that leaves a broker
blocked is not an exception.
"""

from __future__ import annotations

from typing import Final

from nemesis.checkers.breaks import ends as breaks
from nemesis.checkers.explain import ends
from nemesis.checkers.framework.event_list import EventListCheck, Row
from nemesis.checkers.framework.findings import finding
from nemesis.checkers.framework.fold import Results, conclude
from nemesis.checkers.framework.property import Property
from nemesis.history.events import Kind
from nemesis.history.sources import EventSource


class UnforeseenExceptions(EventListCheck):
    kinds = frozenset({Kind.EXCEPTIONS_WATCHED, Kind.UNFORESEEN_EXCEPTION})
    columns = ("node", "error")

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (NO_UNFORESEEN_EXCEPTION,)

    def judge(self, rows: list[Row]) -> Results:
        raised: dict[tuple[int | None, str | None], list[int]] = {}
        for row, event in rows:
            if event.kind == Kind.UNFORESEEN_EXCEPTION:
                raised.setdefault((event.node, event.error), []).append(row)
        findings = [
            finding(
                self.name,
                f"broker-{node}",
                f"Broker {node} raised an unexpected exception{_times(len(same))}: {error}.",
                same[0],
            )
            for (node, error), same in raised.items()
        ]
        watched = sum(event.kind == Kind.EXCEPTIONS_WATCHED for _, event in rows)
        return conclude(NO_UNFORESEEN_EXCEPTION, checked=watched, findings=findings)


def _times(count: int) -> str:
    return "" if count == 1 else f" {count} times"


NO_UNFORESEEN_EXCEPTION: Final = Property(
    name="no-unforeseen-exception",
    promise="No broker raises an exception that its code does not foresee.",
    unit="broker processes",
    unknown="No broker traced that it records its exceptions.",
    source="A requirement of this harness: an exception that nothing foresees skips work unseen.",
    check=UnforeseenExceptions,
    decided_from=frozenset({EventSource.TRACES}),
    recorded_since=4,
    reason=ends.no_unforeseen_exception,
    breaks=breaks.NO_UNFORESEEN_EXCEPTION,
)
