"""The causes of findings of ``convergence`` and ``late-recovery``, as of the time of their last event."""

from __future__ import annotations

from collections.abc import Sequence

from nemesis.checkers.causes import metadata, partitions
from nemesis.checkers.causes.chain import NOT_TRACED, Chain, Link, cause
from nemesis.checkers.causes.registrations import not_registered
from nemesis.checkers.causes.view import View
from nemesis.checkers.framework.event_list import Row
from nemesis.checkers.framework.reason import Case, Cause
from nemesis.history.events import Event, Kind


def of_convergence(case: Case, rows: Sequence[Row]) -> Cause:
    """Return the cause of a convergence check that did not come true."""
    failed = case.first_of(Kind.CONVERGENCE)
    return _cause(case, rows, failed, failed, "this check failed")


def of_late_recovery(case: Case, rows: Sequence[Row]) -> Cause:
    """Return the cause of a partition that takes no records, as of the last send that failed."""
    return _cause(case, rows, case.events[-1], None, "this failure")


def _cause(
    case: Case, rows: Sequence[Row], about: Event | None, check: Event | None, end: str
) -> Cause:
    if about is None or all(event.time < 0 for _, event in rows):
        return cause([Link(NOT_TRACED)])
    view = View(rows, max(event.time for event in case.events), end)
    return cause(_by_time(view, _chain(view, about, None if check is None else check.check)))


def _by_time(view: View, chain: Chain) -> Chain:
    """Return the links with the oldest event first; one without an event stays behind the link before it.

    The links behind the last event state what was expected or is not known: they stay at the end.
    """
    last = max((index for index, link in enumerate(chain) if link.row is not None), default=-1)
    since: list[tuple[int, Link]] = []
    for link in chain[: last + 1]:
        before = since[-1][0] if since else -1
        if link.row is not None and not link.is_remark:
            before = view.time_of(link.row[1])
        since.append((before, link))
    return [*(link for _, link in sorted(since, key=lambda item: item[0])), *chain[last + 1 :]]


def _chain(view: View, about: Event, check: str | None) -> Chain:
    if about.topic is not None and about.partition is not None:
        if check == "metadata" and about.node is not None:
            return metadata.old_partition(view, about.node, about.topic, about.partition)
        is_of_client = check in (None, "produce", "fetch")
        error = (about.error or "") if is_of_client else ""
        return partitions.stuck(view, about.topic, about.partition, error)
    if about.node is None:
        return []
    if check == "metadata":
        return metadata.old_cluster(view, about.node)
    return not_registered(view, about.node)
