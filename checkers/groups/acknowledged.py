"""What the coordinator of a group has certainly taken in when it gets a request.

A commit is acknowledged when all in-sync replicas of the group's offsets partition have it, so each later leader of the
partition has it, too (``leader-completeness``). Two facts follow, and nothing else is used:

* A commit that is sent after another one of the same group was acknowledged is acknowledged by the same leader or by a
  later one: an earlier leader cannot get an acknowledgement from the later one, which is an in-sync replica. So the
  broker that acknowledges a commit has all commits that were acknowledged before it was sent.
* A broker that coordinates a group does not go back: what it has acknowledged or must have had then, it has in every
  later answer, from memory or from its log.

A commit proves its generation only if it is *settled*: its member had got its assignment of that generation before. The
assignment is answered once the generation is in the log, so the generation stands there before the commit. Without the
assignment it may not: where the group cannot be stored (NOT_ENOUGH_REPLICAS), the next rebalance begins, and meanwhile
the coordinator takes commits in a generation that no log has.

A broker that has not acknowledged a commit may be a former leader that does not know of its successor. It answers from
what it had.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from nemesis.checkers.groups.group_operations import (
    COMMIT,
    FETCH,
    JOIN,
    LEAVE,
    SYNC,
    Group,
    Operation,
    TopicPartition,
)

_ANSWERED: Final = (COMMIT, FETCH, JOIN, LEAVE, SYNC)
"""Operations that no coordinator answers with success before it has loaded the group."""


@dataclass(slots=True)
class Latest:
    """Acknowledged commits in the order of their acknowledgements, and of each beginning of that list the best one.

    The best one of a partition is the one that was sent last; the best one of a group has the largest generation.
    """

    times: list[int] = field(default_factory=list)
    best: list[Operation] = field(default_factory=list)
    _worths: list[int] = field(default_factory=list)

    def add(self, commit: Operation, worth: int) -> None:
        is_better = not self.best or worth > self._worths[-1]
        self.times.append(commit.ended)
        self.best.append(commit if is_better else self.best[-1])
        self._worths.append(worth if is_better else self._worths[-1])

    def before(self, time: int) -> Operation | None:
        """Return the best of those that were acknowledged before this time."""
        index = bisect_left(self.times, time)
        return self.best[index - 1] if index else None


class Acknowledged:
    """The acknowledged commits of one group."""

    def __init__(self, group: Group) -> None:
        self._of_partition: dict[TopicPartition, Latest] = defaultdict(Latest)
        self._own: dict[tuple[TopicPartition, int | None], Latest] = defaultdict(Latest)
        self._generations = Latest()
        self._sent: dict[int | None, Latest] = defaultdict(Latest)
        """By broker the commits that it acknowledged; the best one was sent last."""
        self._own_generations: dict[int | None, Latest] = defaultdict(Latest)
        self._answers: dict[int | None, Latest] = defaultdict(Latest)
        """By broker the requests for which it looked at the group; the best one was sent last."""
        for request in sorted(group.ok(*_ANSWERED), key=lambda item: item.ended):
            self._answers[request.event.node].add(request, request.began)
        for commit in sorted(group.ok(COMMIT), key=lambda item: item.ended):
            node = commit.event.node
            self._of_partition[commit.tp].add(commit, commit.began)
            self._own[commit.tp, node].add(commit, commit.began)
            self._sent[node].add(commit, commit.began)
            if commit.is_settled:
                self._generations.add(commit, commit.generation)
                self._own_generations[node].add(commit, commit.generation)

    def generation_before(self, commit: Operation) -> Operation | None:
        """Return the settled commit of the latest generation that was acknowledged before this one was sent."""
        return self._generations.before(commit.began)

    def generation_at(self, request: Operation) -> Operation | None:
        """Return the settled commit of the latest generation that the broker had when it was sent the request."""
        node = request.event.node
        return _best(
            self._own_generations[node].before(request.began),
            self._generations.before(self._bound(request)),
            lambda commit: commit.generation,
        )

    def answer_before(self, request: Operation) -> Operation | None:
        """Return the last request for which the same broker had looked at the group; None if there was none."""
        return self._answers[request.event.node].before(request.began)

    def offset_at(self, request: Operation) -> Operation | None:
        """Return the last commit of the partition that the broker had taken in when it was sent the request."""
        return _best(
            self._own[request.tp, request.event.node].before(request.began),
            self._of_partition[request.tp].before(self._bound(request)),
            lambda commit: commit.began,
        )

    def _bound(self, request: Operation) -> int:
        """Return the time before which all acknowledged commits were known to the broker when it got the request."""
        last = self._sent[request.event.node].before(request.began)
        return 0 if last is None else last.began


def _best(
    first: Operation | None, second: Operation | None, worth: Callable[[Operation], int]
) -> Operation | None:
    return max(
        (commit for commit in (first, second) if commit is not None), key=worth, default=None
    )
