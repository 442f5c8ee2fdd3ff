"""Lines that may mean something else, too: a verdict does not depend on one of the two readings."""

from __future__ import annotations

import pytest

from nemesis.checkers.framework.model import Verdict
from nemesis.history.foreign.problems import Damage
from tests.history.foreign.reading import notes, problems
from tests.nemesis.judging.foreign_judge import history, judged, verdict_of

SENT = (
    "invoke 0 send [[:send 0 1]]",
    "ok 0 send [[:send 0 [0 1]]]",
    "invoke 1 assign [0]",
    "ok 1 assign [0]",
)
POLLED = ("invoke 1 poll [[:poll]]", "ok 1 poll [[:poll {0 [[0 1]]}]]")
ASSIGNED_AGAIN = ("invoke 1 assign [0]", "ok 1 assign [0]")
READ_AGAIN = (*SENT, *POLLED, *ASSIGNED_AGAIN, *POLLED)


def as_text(*lines: str) -> str:
    """The lines as Jepsen's ``history.txt`` has them."""
    fields = [line.split(maxsplit=3) for line in lines]
    return "".join(f"{process}\t:{kind}\t:{f}\t{value}\n" for kind, process, f, value in fields)


@pytest.mark.parametrize("kind", ["invoke", "ok"])
def test_one_end_of_an_assignment_states_that_its_consumer_seeks(kind: str) -> None:
    *before, invoke, ok, asked, polled = history(*READ_AGAIN).splitlines()
    assert verdict_of("\n".join([*before, invoke, ok, asked, polled]), "kafka") is Verdict.INVALID
    ends = [
        line.replace("[0]", "[0] :seek-to-beginning? true") if f":type :{kind}" in line else line
        for line in (invoke, ok)
    ]
    assert verdict_of("\n".join([*before, *ends, asked, polled]), "kafka") is Verdict.VALID


def test_a_form_without_other_entries_does_not_state_that_a_consumer_reads_on() -> None:
    assert verdict_of(as_text(*READ_AGAIN), "kafka") is Verdict.VALID
    assert verdict_of(as_text(*SENT, *POLLED, *POLLED), "kafka") is Verdict.INVALID


@pytest.mark.parametrize(
    ("stored", "verdict"), [("[5 [1 2]]", Verdict.VALID), ("[5 2]", Verdict.INVALID)]
)
def test_a_sent_value_may_be_a_vector_of_two(stored: str, verdict: Verdict) -> None:
    text = history(
        "invoke 0 send [[:send 0 [1 2]]]",
        "ok 0 send [[:send 0 [5 [1 2]]]]",
        "invoke 0 send [[:send 0 3]]",
        "ok 0 send [[:send 0 [6 3]]]",
        *SENT[2:],
        "invoke 1 poll [[:poll]]",
        f"ok 1 poll [[:poll {{0 [{stored} [6 3]]}}]]",
        "invoke 1 poll [[:poll]]",
        "ok 1 poll [[:poll {}]]",
    )
    assert judged(text, "kafka").verdict is verdict


@pytest.mark.parametrize("read", ["12", "34", ":a", "1.0"])
def test_the_value_of_the_last_line_may_be_cut_off_where_no_bracket_closes_it(read: str) -> None:
    wrote = ("invoke 0 write 12", "ok 0 write 12", "invoke 0 read nil")
    text = as_text(*wrote, f"ok 0 read {read}")
    assert verdict_of(text, "register") is (Verdict.VALID if read == "12" else Verdict.INVALID)
    assert verdict_of(text[:-1], "register") is Verdict.UNKNOWN
    assert problems(text[:-1]) == [
        f"line 4 {Damage.TORN.sentence} (without a line break its value may be cut off)"
    ]


@pytest.mark.parametrize("value", ["nil", "false", "[1 3]", '"a b"'])
def test_a_value_that_cannot_go_on_is_whole_without_a_line_break(value: str) -> None:
    text = as_text("invoke 0 write 12", "ok 0 write 12", "invoke 0 read nil", f"ok 0 read {value}")
    assert problems(text[:-1]) == problems(text)


@pytest.mark.parametrize(
    "f", ["delete", "incr", "getAndSet", "compare-and-set", "LPUSH", "final_reset"]
)
def test_a_function_that_changes_an_object_is_not_left_out(f: str) -> None:
    wrote = ("invoke 0 write 1", "ok 0 write 1", f"invoke 0 {f} nil")
    read = ("invoke 1 read nil", "ok 1 read nil")
    text = history(*wrote, f"ok 0 {f} nil", *read)
    assert verdict_of(text, "register") is Verdict.UNKNOWN
    assert problems(text) == [f"line 3 {Damage.UNKNOWN_F.sentence} (:f {f})"]
    failed = history(*wrote, f"fail 0 {f} nil", *read)
    assert verdict_of(failed, "register") is Verdict.INVALID


@pytest.mark.parametrize("f", ["refresh", "awaitLeader", "check", "offset-of"])
def test_a_function_that_changes_no_object_is_left_out(f: str) -> None:
    text = history("invoke 0 write 1", "ok 0 write 1", f"invoke 0 {f} nil", f"ok 0 {f} nil")
    assert problems(text) == []
    assert notes(text) == [f"line 3 {Damage.OTHER_F.sentence} (1 × :f {f})"]


@pytest.mark.parametrize(
    ("f", "verdict"),
    [("check", Verdict.INVALID), ("peek_all", Verdict.INVALID), ("fly", Verdict.UNKNOWN)],
)
def test_a_function_that_may_change_an_object_may_explain_a_violation(
    f: str, verdict: Verdict
) -> None:
    wrote = ("invoke 0 write 1", "ok 0 write 1", f"invoke 0 {f} nil")
    read = ("invoke 1 read nil", "ok 1 read nil")
    assert verdict_of(history(*wrote, f"ok 0 {f} nil", *read), "register") is verdict
    kept = history(*wrote, f"ok 0 {f} nil", "invoke 1 read nil", "ok 1 read 1")
    assert verdict_of(kept, "register") is Verdict.VALID
    failed = history(*wrote, f"fail 0 {f} nil", *read)
    assert verdict_of(failed, "register") is Verdict.INVALID


@pytest.mark.parametrize(
    ("returned", "verdict"),
    [("1", Verdict.VALID), ("2", Verdict.UNKNOWN), ("3", Verdict.INVALID)],
)
def test_what_a_write_states_in_place_of_its_value_may_be_what_it_wrote(
    returned: str, verdict: Verdict
) -> None:
    wrote = ("invoke 0 write 1", "ok 0 write 2")
    read = ("invoke 1 read nil", f"ok 1 read {returned}")
    assert verdict_of(history(*wrote, *read), "register") is verdict


@pytest.mark.parametrize("times", [(100, 110, 10, 20), (10, 20, 100, 110)])
def test_lines_with_equal_indexes_do_not_state_their_order(times: tuple[int, ...]) -> None:
    said = (
        (":invoke", 0, ":write", "1"),
        (":ok", 0, ":write", "1"),
        (":invoke", 1, ":read", "nil"),
        (":ok", 1, ":read", "nil"),
    )
    text = "".join(
        f"{{:type {type_} :process {process} :f {f} :value {value} :time {time} :index {number % 2}}}\n"
        for number, ((type_, process, f, value), time) in enumerate(zip(said, times, strict=True))
    )
    assert verdict_of(text, "register") is Verdict.UNKNOWN
    assert [problem for problem in problems(text) if "index" in problem]


COUNTED = ("invoke 0 add 5", "ok 0 add 5", "invoke 1 read nil", "ok 1 read 5")
WRITTEN = ("invoke 0 txn [[:w 1 1]]", "ok 0 txn [[:w 1 1]]")
LISTED = ("invoke 0 txn [[:append 1 1]]", "ok 0 txn [[:append 1 1]]")
FIRST = ("invoke 0 insert [1 [1 nil]]", "ok 0 insert [1 [1 nil]]")
SECOND = ("invoke 0 insert [1 [nil 2]]", "ok 0 insert [1 [nil 2]]")
READ_NIL = ("invoke 0 txn [[:r 1 nil]]", "ok 0 txn [[:r 1 nil]]")
RICHER = ("invoke 0 read nil", "ok 0 read {:a 8 :b 5}")


@pytest.mark.parametrize(
    ("workload", "before", "change", "after"),
    [
        ("counter", COUNTED, "add -2", ("invoke 1 read nil", "ok 1 read 3")),
        ("counter", COUNTED, "dec 2", ("invoke 1 read nil", "ok 1 read 3")),
        ("rw-register", WRITTEN, "txn [[:w 1 nil]]", READ_NIL),
        ("rw-register", WRITTEN, "txn [[:delete 1 nil]]", READ_NIL),
        ("rw-register", WRITTEN, "delete 1", READ_NIL),
        ("list-append", LISTED, "truncate 1", READ_NIL),
        ("predicate-inserts", FIRST, "delete 1", SECOND),
        ("bank", ("invoke 0 read nil", "ok 0 read {:a 5 :b 5}"), "deposit {:to :a}", RICHER),
        ("kafka", (*SENT, *POLLED), "seek [[0 0]]", POLLED),
        (
            "kafka",
            SENT,
            "delete-topic 0",
            ("invoke 0 send [[:send 0 2]]", "ok 0 send [[:send 0 [0 2]]]"),
        ),
    ],
)
def test_a_change_that_cannot_be_judged_may_explain_every_finding(
    workload: str, before: tuple[str, ...], change: str, after: tuple[str, ...]
) -> None:
    process = after[0].split()[1]
    invoke = f"invoke {process} {change}"
    assert verdict_of(history(*before, *after), workload) is Verdict.INVALID
    changed = history(*before, invoke, invoke.replace("invoke", "ok"), *after)
    assert verdict_of(changed, workload) is Verdict.UNKNOWN
    in_doubt = history(*before, invoke, invoke.replace("invoke", "info"), *after)
    assert verdict_of(in_doubt, workload) is Verdict.UNKNOWN
    failed = history(*before, invoke, invoke.replace("invoke", "fail"), *after)
    assert verdict_of(failed, workload) is Verdict.INVALID


def test_transfers_without_a_value_move_money_and_make_none() -> None:
    lines = ("invoke 0 read nil", "ok 0 read {:a 5 :b 5}", "invoke 0 transfer 3", "ok 0 transfer 3")
    assert verdict_of(history(*lines, *RICHER), "bank") is Verdict.INVALID


@pytest.mark.parametrize(
    ("again", "verdict"),
    [("ok", Verdict.VALID), ("info", Verdict.VALID), ("fail", Verdict.INVALID)],
)
def test_a_value_that_was_sent_again_is_not_read_from_the_send_that_failed(
    again: str, verdict: Verdict
) -> None:
    send = "0 send [[:send 0 7]]"
    retried = (f"invoke {send}", f"fail {send}", f"invoke {send}", f"{again} {send}")
    other = ("invoke 3 send [[:send 0 1]]", "ok 3 send [[:send 0 [0 1]]]")
    polled = ("invoke 1 poll [[:poll]]", "ok 1 poll [[:poll {0 [[0 1] [1 7]]}]]")
    text = history(*other, *SENT[2:], *retried, *polled)
    convicted = [result.verdict for result in judged(text, "kafka").results if result.findings]
    assert convicted == ([Verdict.INVALID] if verdict is Verdict.INVALID else [])
    never_answered = history(*other, *SENT[2:], *retried[:3], *polled)
    assert not any(result.findings for result in judged(never_answered, "kafka").results)


def test_a_process_that_crashed_goes_on_with_another_consumer() -> None:
    crash = ("invoke 1 crash nil", "info 1 crash nil")
    assert verdict_of(history(*SENT, *POLLED, *crash, *SENT[2:], *POLLED), "kafka") is Verdict.VALID
    failed = (crash[0], "fail 1 crash nil")
    text = history(*SENT, *POLLED, *failed, *SENT[2:], *POLLED)
    assert verdict_of(text, "kafka") is Verdict.INVALID


@pytest.mark.parametrize(("request_", "key"), [("nil", ""), ("[7 nil]", "7 ")])
def test_a_lock_that_was_not_granted_is_not_held(request_: str, key: str) -> None:
    def answer(word: str) -> str:
        return f"[{key}{word}]" if key else word

    granted = (f"invoke 0 acquire {request_}", f"ok 0 acquire {answer('true')}")
    refused = (f"invoke 1 acquire {request_}", f"ok 1 acquire {answer('false')}")
    text = history(*granted, *refused)
    assert verdict_of(text, "mutex") is Verdict.VALID
    assert notes(text, "mutex") == [f"line 4 {Damage.DENIED.sentence}"]
    twice = history(*granted, refused[0], f"ok 1 acquire {answer('true')}")
    assert verdict_of(twice, "mutex") is Verdict.INVALID
