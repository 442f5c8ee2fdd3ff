"""sequential: the smallest break, every interleaving of a write and a read, and Jepsen's histories."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nemesis.checkers.breaks import totals as breaks
from nemesis.checkers.breaks.operations import Call, events
from nemesis.checkers.framework.model import Result, Verdict
from nemesis.checkers.linearizable.subkeys import Sequential
from tests.checkers.histories import judge
from tests.nemesis.judging.foreign_judge import judged

ABSENT = -1
SUBKEYS = 3


def result_of(*calls: Call) -> Result:
    return judge(Sequential(), events(*calls))["sequential"]


def test_an_older_subkey_that_is_missing() -> None:
    (finding,) = judge(Sequential(), breaks.SEQUENTIAL[0])["sequential"].findings
    assert finding.sentence == (
        "A read of key 3 returned 8 and then nil for a subkey that is older."
    )


def test_reads_are_judged_one_by_one() -> None:
    newest, oldest = (9, 8, 7), (ABSENT, ABSENT, 7)
    reads = [
        Call("read", 1, 2, values=values, key=key) for key, values in enumerate([newest, oldest])
    ]
    assert result_of(*reads).verdict is Verdict.VALID
    assert result_of(Call("write", 1, 2, key=3)).verdict is Verdict.UNKNOWN
    unknown = Call("read", 1, 2, "info", values=(9, ABSENT), key=3)
    assert result_of(unknown).verdict is Verdict.UNKNOWN
    twice = Call("read", 1, 2, values=(9, ABSENT, 7, ABSENT), key=3)
    assert result_of(twice, *reads, twice).finding_count == 2


def line(kind: str, f: str, value: str) -> str:
    return f"{{:type :{kind} :process 0 :f :{f} :value {value}}}\n"


def test_jepsens_histories() -> None:
    write = line("invoke", "write", "12") + line("ok", "write", "12")
    read = line("invoke", "read", "12")
    for answer in ("[nil nil nil]", '[nil "12_1" "12_0"]', '["12_2" "12_1" "12_0"]'):
        text = write + read + line("ok", "read", f"[12 {answer}]")
        assert judged(text, "sequential").verdict is Verdict.VALID
    outcome = judged(write + read + line("ok", "read", '[12 [nil "12_1" nil]]'), "sequential")
    assert outcome.verdict is Verdict.INVALID
    assert '"12_1"' in outcome.results[0].findings[0].sentence
    assert judged(write + read + line("ok", "read", "12"), "sequential").verdict is Verdict.UNKNOWN


def answers_of(interleaving: list[bool]) -> tuple[int, ...]:
    """What a read returns whose queries and a write's insertions have this sequence; True: an insertion."""
    inserted = 0
    answers: list[int] = []
    for is_insertion in interleaving:
        if is_insertion and inserted < SUBKEYS:
            inserted += 1
        elif not is_insertion and len(answers) < SUBKEYS:
            subkey = SUBKEYS - 1 - len(answers)
            answers.append(subkey if subkey < inserted else ABSENT)
    return tuple(answers)


EVERY_ANSWER = {
    answer
    for number in range(2 ** (2 * SUBKEYS))
    if len(answer := answers_of([bool(number >> bit & 1) for bit in range(2 * SUBKEYS)])) == SUBKEYS
}


@given(st.tuples(*(st.sampled_from([subkey, ABSENT]) for subkey in reversed(range(SUBKEYS)))))
def test_every_interleaving_of_insertions_and_queries_agrees(answer: tuple[int, ...]) -> None:
    verdict = result_of(Call("read", 1, 2, values=answer, key=3)).verdict
    assert (verdict is Verdict.VALID) == (answer in EVERY_ANSWER)
