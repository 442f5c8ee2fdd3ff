"""Initial values: stated, concluded from reads, or neither."""

from __future__ import annotations

from random import Random

import pytest

from nemesis.checkers.framework.model import Outcome, Verdict
from nemesis.running.checking_options import require_initial
from nemesis.support.errors import UsageError
from tests.nemesis.judging.foreign_judge import judged

WORKLOADS = ("register", "cas-register", "rw-register")
PASS = (
    "Reads that ended before any write of their key began returned {0}, which no operation writes: "
    "pass --initial {0}."
)


def history(workload: str, *operations: tuple[str, object], values: str = "{}") -> str:
    """Operations one after the other, ``("w", 1)`` or ``("r", 1)``, in the words of a workload."""
    lines: list[str] = []
    for number, (f, value) in enumerate(operations):
        text = "nil" if value is None else values.format(value)
        if workload == "rw-register":
            asked = f"[[:{f} :x {text if f == 'w' else 'nil'}]]"
            answered, f = f"[[:{f} :x {text}]]", "txn"
        else:
            asked, answered = text if f == "w" else "nil", text
            f = {"w": "write", "r": "read", "c": "cas"}[f]
        for kind, said in (("invoke", asked), ("ok", answered)):
            lines.append(f"{{:type :{kind} :process 0 :f :{f} :value {said} :index {len(lines)}}}")
        assert len(lines) == 2 * number + 2
    return "\n".join(lines)


def sentences(outcome: Outcome) -> list[str]:
    return [finding.sentence for result in outcome.results for finding in result.findings]


@pytest.mark.parametrize("workload", WORKLOADS)
def test_a_value_that_reads_show_before_all_writes_is_to_be_stated(workload: str) -> None:
    text = history(workload, ("r", 0), ("w", 1), ("r", 1))
    outcome = judged(text, workload)
    assert outcome.verdict is Verdict.UNKNOWN
    assert PASS.format(0) in sentences(outcome)
    assert judged(text, workload, initial="0").verdict is Verdict.VALID
    assert judged(text, workload, initial="nil").verdict is Verdict.INVALID
    assert judged(text, workload, initial="7").verdict is Verdict.INVALID


@pytest.mark.parametrize("workload", WORKLOADS)
def test_the_value_to_state_is_written_as_in_the_history(workload: str) -> None:
    text = history(workload, ("r", "none"), ("w", "a"), ("r", "a"), values=":{}")
    assert PASS.format(":none") in sentences(judged(text, workload))
    assert judged(text, workload, initial=":none").verdict is Verdict.VALID
    assert judged(text, workload, initial='"none"').verdict is Verdict.INVALID


def test_a_text_is_stated_as_a_shell_leaves_it() -> None:
    text = history("register", ("r", "empty"), ("w", "b"), ("r", "b"), values='"{}"')
    said = PASS.format('"empty"').replace('--initial "empty"', "--initial '\"empty\"'")
    assert said in sentences(judged(text, "register"))
    for initial in ('"empty"', "empty"):
        assert judged(text, "register", initial=initial).verdict is Verdict.VALID
    word = text.replace('"', "")
    assert judged(word, "register", initial="empty").verdict is Verdict.VALID
    assert judged(word, "register", initial='"empty"').verdict is Verdict.INVALID


def test_null_is_nil() -> None:
    text = history("register", ("r", None), ("w", 1), ("r", 1))
    assert judged(text, "register", initial="null").verdict is Verdict.VALID


@pytest.mark.parametrize("workload", WORKLOADS)
def test_nil_is_read_of_what_has_another_initial_value(workload: str) -> None:
    text = history(workload, ("r", None), ("w", 1), ("r", 1))
    assert judged(text, workload).verdict is Verdict.VALID
    outcome = judged(text, workload, initial="0")
    assert outcome.verdict is Verdict.INVALID
    assert any("nil" in sentence for sentence in sentences(outcome))


@pytest.mark.parametrize("workload", WORKLOADS)
@pytest.mark.parametrize(
    "operations",
    [
        # The value is read after a write only.
        [("w", 1), ("r", 0)],
        # No key is written.
        [("r", 0)],
        # Two values before all writes.
        [("r", 0), ("r", 2), ("w", 1)],
        # The value is written later, so that it was read too early.
        [("r", 0), ("w", 0)],
        # One value before all writes, another one after them.
        [("r", 0), ("w", 1), ("r", 5)],
        # The initial value comes back.
        [("r", 0), ("w", 1), ("r", 0)],
        [("r", None), ("r", 0), ("w", 1)],
    ],
)
def test_any_other_value_that_nobody_wrote_is_a_violation(
    workload: str, operations: list[tuple[str, object]]
) -> None:
    assert judged(history(workload, *operations), workload).verdict is Verdict.INVALID


def test_a_compare_and_set_shows_the_initial_value() -> None:
    text = history("cas-register", ("c", "[0 1]"), ("r", 1))
    outcome = judged(text, "cas-register")
    assert outcome.verdict is Verdict.UNKNOWN
    assert PASS.format(0) in sentences(outcome)
    assert judged(text, "cas-register", initial="0").verdict is Verdict.VALID
    wrong = history("cas-register", ("c", "[0 1]"), ("r", 2))
    assert judged(wrong, "cas-register").verdict is Verdict.INVALID


def test_an_update_of_the_initial_value_shows_it() -> None:
    text = (
        "{:type :invoke :process 0 :f :txn :value [[:r 1 nil] [:w 1 5]] :index 0}"
        "{:type :ok :process 0 :f :txn :value [[:r 1 0] [:w 1 5]] :index 1}"
    )
    assert PASS.format(0) in sentences(judged(text, "rw-register"))


def test_two_updates_of_a_stated_initial_value_are_a_lost_update() -> None:
    lines = [
        f"{{:type :{kind} :process {process} :f :txn :value [[:r 1 {read}] [:w 1 {process}]]}}"
        for kind, read in (("invoke", "nil"), ("ok", "0"))
        for process in (5, 6)
    ]
    outcome = judged("\n".join(lines), "rw-register", initial="0")
    assert any("both read 0 of key 1" in sentence for sentence in sentences(outcome))


def test_a_write_of_the_initial_value_cannot_be_told_from_it() -> None:
    text = history("rw-register", ("w", 0), ("r", 0))
    outcome = judged(text, "rw-register", initial="0")
    assert outcome.verdict is Verdict.UNKNOWN
    assert any("is its initial value" in sentence for sentence in sentences(outcome))
    text = history("register", ("r", 0), ("w", 1), ("w", 0), ("r", 0))
    assert judged(text, "register", initial="0").verdict is Verdict.VALID


@pytest.mark.parametrize("workload", WORKLOADS)
def test_another_name_of_the_initial_value_changes_nothing(workload: str) -> None:
    """A history whose nil is written as 0 has the verdict of the history with nil, if 0 is stated."""
    met = set()
    for seed in range(60):
        random = Random(seed)
        fresh = iter(range(1, 100))
        operations: list[tuple[str, object]] = []
        written: list[int | None] = [None]
        for _ in range(6):
            if random.random() < 0.5:
                written.append(next(fresh))
                operations.append(("w", written[-1]))
            else:
                operations.append(("r", random.choice(written[-2:])))
        renamed = [(f, 0 if value is None else value) for f, value in operations]
        expected = judged(history(workload, *operations), workload).verdict
        verdict = judged(history(workload, *renamed), workload, initial="0").verdict
        assert verdict is expected, operations
        met.add(verdict)
    assert {Verdict.VALID, Verdict.INVALID} <= met


@pytest.mark.parametrize("text", ["-1", "nil", "2.5", "abc", str(2**62)])
def test_a_counter_begins_with_a_number_that_its_reads_may_return(text: str) -> None:
    """A name has a number of its own from 2^62 on, which is not the value."""
    with pytest.raises(UsageError, match="a counter begins with a whole number from 0 to 2"):
        require_initial(text, "counter")
    require_initial(text, "register")
    require_initial(str(2**62 - 1), "counter")
