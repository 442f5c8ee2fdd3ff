"""The pool: every task comes to an end that is told, whatever it does to its worker."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import psutil

from nemesis.searching.explore.pool import Crashed, Finished, Pool
from tests.nemesis.searching.explore.labour import labour


def outcomes(
    tasks: list[str], *, jobs: int = 1, limit_s: float = 60.0
) -> dict[str, str | Crashed[str]]:
    with Pool(labour, jobs=jobs, limit_s=limit_s) as pool:
        return {
            done.task: done.result if isinstance(done, Finished) else done
            for done in pool.run(iter(tasks))
        }


def crashed(outcome: object) -> Crashed[str]:
    assert isinstance(outcome, Crashed)
    return outcome


def reason(outcome: object) -> str:
    return crashed(outcome).reason


def test_every_task_is_answered_by_some_worker() -> None:
    words = [f"word-{number}" for number in range(20)]
    assert outcomes(words, jobs=2) == {word: word.upper() for word in words}


def test_a_crash_costs_its_own_task_only() -> None:
    done = outcomes(["a", "raise", "b", "exit", "c", "killed", "unpicklable", "d"])
    assert [done[word] for word in "abcd"] == ["A", "B", "C", "D"]
    assert reason(done["raise"]) == "ValueError: two lines"
    assert "labour.py" in crashed(done["raise"]).trace
    assert reason(done["exit"]) == "its process exited with code 3: last words"
    assert crashed(done["exit"]).output == "first words\nlast words"
    assert reason(done["killed"]) == "its process was ended by SIGKILL"
    assert "local object 'labour.<locals>.<lambda>'" in reason(done["unpicklable"])


def test_a_hang_is_ended_at_the_limit() -> None:
    done = outcomes(["hang", "a"], limit_s=3.0)
    assert reason(done["hang"]) == "still at work after 3 s"
    assert "in labour" in crashed(done["hang"]).output  # the stack
    assert done["a"] == "A"


def test_a_worker_that_takes_too_much_memory_is_ended() -> None:
    with Pool(labour, jobs=1, limit_s=60.0, memory_limit_bytes=200 * 2**20) as pool:
        [done] = pool.run(iter(["eat"]))
    assert reason(done) == "took more than 0.2 GiB of memory"


def test_tasks_are_taken_only_when_a_worker_is_free() -> None:
    taken = []

    def tasks() -> Iterator[str]:
        for number in range(4):
            taken.append(number)
            yield "word"

    with Pool(labour, jobs=1, limit_s=60.0) as pool:
        for count, _ in enumerate(pool.run(tasks()), 1):
            assert len(taken) == count


def test_a_worker_serves_many_tasks_and_ends_with_the_pool() -> None:
    with Pool(labour, jobs=1, limit_s=60.0) as pool:
        answers = list(pool.run(iter(["pid", "pid"])))
        pids = {done.result for done in answers if isinstance(done, Finished)}
        assert len(answers) == 2
        [pid] = map(int, pids)
        assert psutil.pid_exists(pid)
    assert not psutil.pid_exists(pid)


def test_no_worker_is_started_without_a_task() -> None:
    before = {child.pid for child in psutil.Process().children() if is_worker(child)}
    with Pool(labour, jobs=4, limit_s=60.0) as pool:
        assert [done.task for done in pool.run(iter(["word"]))] == ["word"]
        now = {child.pid for child in psutil.Process().children() if is_worker(child)}
        assert len(now - before) == 1


def test_leaving_the_pool_ends_a_worker_that_is_busy() -> None:
    with Pool(labour, jobs=2, limit_s=60.0) as pool:
        assert next(pool.run(iter(["word", "hang"]))).task == "word"
        at_work = [child for child in psutil.Process().children() if is_worker(child)]
        assert len(at_work) == 2
    assert not [child for child in at_work if child.is_running()]


def test_what_a_worker_writes_is_whole_when_the_pool_is_left(tmp_path: Path) -> None:
    file = tmp_path / "run"
    with Pool(labour, jobs=2, limit_s=60.0) as pool:
        done = pool.run(iter([f"write {file}", "a", "b", *["word"] * 100_000]))
        while not file.exists():
            next(done)
        at_work = [child for child in psutil.Process().children() if is_worker(child)]
    assert file.read_text() == "whole"
    assert not [child for child in at_work if child.is_running()]


def test_a_worker_does_not_hear_ctrl_c_even_before_it_works() -> None:
    """A terminal sends it to every process. Here it comes while the first worker imports."""

    def tasks() -> Iterator[str]:
        yield "a"
        while not (starting := [item for item in psutil.Process().children() if is_worker(item)]):
            pass
        for worker in starting:
            worker.send_signal(signal.SIGINT)
        yield "b"

    with Pool(labour, jobs=2, limit_s=60.0) as pool:
        done = {item.task: item for item in pool.run(tasks())}
    assert done == {"a": Finished("a", "A"), "b": Finished("b", "B")}


def is_worker(process: psutil.Process) -> bool:
    return any("spawn_main" in argument for argument in process.cmdline())
