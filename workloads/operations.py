"""Recording operations, and the pace of the processes that carry them out."""

from __future__ import annotations

import asyncio
from random import Random  # noqa: TID251 - the type only
from typing import Any, Self

from nemesis.history.events import Kind
from nemesis.history.recorder import Recorder
from nemesis.workloads.kafka.errors import KafkaError, RequestTimedOut


class OperationLog:
    """Numbers the operations of all processes of a workload and counts the completed ones."""

    def __init__(self) -> None:
        self.completed = 0
        self._begun = 0

    def operation(self, recorder: Recorder, columns: dict[str, Any]) -> Operation:
        """Return the context in which one operation is carried out.

        ``columns`` go into all its events; the dictionary is the operation's from now on.
        """
        return Operation(self, recorder, columns)

    def begin(self) -> int:
        self._begun += 1
        return self._begun

    def end(self) -> None:
        self.completed += 1


class Operation:
    """Records ``invoke`` on entry and exactly one completion on exit, whatever happens between.

    A ``KafkaError`` is recorded and swallowed; a cancellation is recorded as ``info`` and goes on.
    """

    def __init__(self, log: OperationLog, recorder: Recorder, columns: dict[str, Any]) -> None:
        self._log = log
        self._recorder = recorder
        self._columns = columns
        columns["op"] = log.begin()
        self._result: dict[str, Any] | None = None
        self._failure: KafkaError | None = None
        self.error: str | None = None
        """What was answered instead of a result."""

    @property
    def succeeded(self) -> bool:
        return self._result is not None

    def ok(self, **columns: Any) -> None:
        self._result = columns

    def add(self, **columns: Any) -> None:
        """Add columns to the completion, also to one that is an error."""
        self._columns |= columns

    def failed(self, failure: KafkaError) -> None:
        """Complete with this error, as if it had been raised: a request of several operations may do some of them."""
        self._failure = failure

    def __enter__(self) -> Self:
        self._recorder.write(Kind.INVOKE, self._columns.copy())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: object
    ) -> bool:
        self._log.end()
        if self._result is not None:
            self._recorder.write(Kind.OK, self._columns | self._result)
            return False
        failure = self._failure or error
        if isinstance(failure, KafkaError):
            # A poll has no effect to be unsure of; Jepsen still calls an unanswered one unknown.
            self.error = failure.name
            outcome = Kind.FAIL if failure.definite else Kind.INFO
            if isinstance(failure, RequestTimedOut):
                self._columns["duration_ms"] = int(failure.waited_s * 1000)
            self._recorder.record(outcome, **self._columns, error=failure.name)
            return isinstance(error, KafkaError)
        name = (
            "CANCELLED"
            if error is None or isinstance(error, asyncio.CancelledError)
            else repr(error)
        )
        self._recorder.record(Kind.INFO, **self._columns, error=name)
        return False


class Pace:
    """Keeps a process to one step per interval, with a random start so that processes do not march in step."""

    def __init__(self, interval_ms: int, rng: Random) -> None:
        self._interval_s = interval_ms / 1000
        self._next = asyncio.get_running_loop().time() + rng.random() * self._interval_s

    async def wait(self) -> None:
        now = asyncio.get_running_loop().time()
        await asyncio.sleep(max(0.0, self._next - now))
        self._next = max(self._next, now) + self._interval_s


class Avoid:
    """Partitions that failed a moment ago."""

    def __init__(self, duration_ms: int) -> None:
        self._duration_s = duration_ms / 1000
        self._until: dict[tuple[str, int], float] = {}

    def add(self, tp: tuple[str, int]) -> None:
        self._until[tp] = asyncio.get_running_loop().time() + self._duration_s

    def not_avoided(self, partitions: list[tuple[str, int]]) -> list[tuple[str, int]]:
        """Those of the partitions that did not fail a moment ago."""
        if not self._until:
            return partitions
        now = asyncio.get_running_loop().time()
        self._until = {tp: until for tp, until in self._until.items() if now < until}
        return [tp for tp in partitions if tp not in self._until]
