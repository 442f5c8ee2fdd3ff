"""Running checks of the shape ``PartitionedCheck``: keys that are too large for one task, many at a time.

Each key's ``divide`` is a generator that asks for tasks and is sent their answers. All of them go forward together, one
round at a time: what they ask for is one job, so that tasks of many keys keep all workers busy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from nemesis.checkers.framework.fold import Grouped, Rounds, Summary, Task
from nemesis.checkers.framework.segment import Key, Segment
from nemesis.history.row_group import RowGroup
from nemesis.history.spark import run_all

if TYPE_CHECKING:
    from pyspark import SparkContext


def run_rounds(spark: SparkContext | None, running: Sequence[Rounds[Summary]]) -> list[Summary]:
    """Return what each of them comes to, in their order."""
    summaries: dict[int, Summary] = {}
    answers: dict[int, list[Any] | None] = dict.fromkeys(range(len(running)))
    while answers:
        asked: dict[int, list[Task]] = {}
        for number, answer in answers.items():
            try:
                asked[number] = running[number].send(answer)  # type: ignore[arg-type]
            except StopIteration as end:
                summaries[number] = end.value
        tasks = [task for tasks in asked.values() for task in tasks]
        done = iter(run_all(spark, _call, tasks))
        answers = {number: [next(done) for _ in tasks] for number, tasks in asked.items()}
    return [summaries[number] for number in range(len(running))]


def at_once(checker: Grouped[Summary], key: Key, groups: Sequence[RowGroup]) -> Summary:
    """A task for a key that cannot be divided after all: what ``check`` says of all of its rows."""
    wanted = (*checker.keys, *checker.columns)
    parts = [
        rows
        for group in groups
        for group_key, rows in Segment.of(group).only(checker.kinds, wanted).by(*checker.keys)
        if group_key == key
    ]
    return checker.check(key, Segment.joined(parts))


def _call(task: Task) -> Any:
    return task()
