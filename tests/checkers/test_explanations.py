"""Each way to break a property is explained step by step, from the events alone."""

from __future__ import annotations

from nemesis.checkers import CHECKERS
from nemesis.checkers.explain import explain
from nemesis.checkers.framework.model import Finding, Verdict
from nemesis.checkers.pages import broken

FINDINGS = [(name, result) for name, value in CHECKERS.items() for result in broken(value)]


def test_each_step_is_a_sentence_of_its_own() -> None:
    for name, result in FINDINGS:
        assert len(result.steps) > len(result.events), name
        assert len(set(result.steps)) == len(result.steps), result.steps
        for step in result.steps:
            assert step.endswith("."), step
            assert "None" not in step, step
            assert "  " not in step, step


def test_steps_that_a_check_gives_itself_are_left_as_they_are() -> None:
    event = {"time": 1, "process": "broker-1", "kind": "truncate", "row": 3}
    given = Finding(
        property="hw-grows",
        verdict=Verdict.INVALID,
        key="t-0",
        sentence="It fell.",
        events=(event,),
        steps=("It was higher.",),
    )
    assert explain(given) == ("It was higher.",)


def test_a_property_without_a_reason_has_its_events_told() -> None:
    event = {"time": 1, "process": "broker-1", "kind": "metadata-updated", "row": 3}
    given = Finding(
        property="of-somebody-else",
        verdict=Verdict.INVALID,
        key="t-0",
        sentence="It is so.",
        events=(event,),
    )
    assert explain(given) == ("broker-1 recorded metadata updated.",)


def test_operations_from_elsewhere_are_told_too() -> None:
    about = {"process": "client-1", "op": 4, "key": 3}
    events = (
        {"time": 1, "kind": "invoke", "f": "write", "value": 7, **about},
        {"time": 2_000_001, "kind": "info", "f": "write", "value": 7, "error": "timeout", **about},
        {"time": 3_000_001, "kind": "ok", "f": "read", "values": [7, 8], **about},
        {"time": 4_000_001, "kind": "ok", "f": "read", "process": "2", "op": 5},
        {"time": 5_000_001, "kind": "fail", "f": "cas", "values": [7, 8], "process": "2", "op": 6},
    )
    given = Finding(
        property="of-somebody-else",
        verdict=Verdict.UNKNOWN,
        key="object 3",
        sentence="It is so.",
        events=events,
    )
    assert explain(given) == (
        "client-1 began write 7 of key 3.",
        "2 ms later, the outcome of write 7 of key 3 by client-1 is unknown (timeout).",
        "1 ms later, client-1 received 7, 8 from read of key 3.",
        "1 ms later, process 2 received nil from read of the object.",
        "1 ms later, cas 7 → 8 of the object by process 2 certainly failed.",
    )


def narrated(*events: dict[str, object], verdict: Verdict = Verdict.INVALID) -> tuple[str, ...]:
    """The steps of a finding of somebody else's property."""
    rows = tuple({"row": row, "process": "0", **event} for row, event in enumerate(events))
    given = Finding(property="G1a", verdict=verdict, key="key 7", sentence="It is so.", events=rows)
    return explain(given)


def test_transactions_are_told_by_what_they_read_and_wrote() -> None:
    about = {"f": "txn", "op": 4}
    assert narrated(
        {"time": 1, "kind": "invoke", "micro_operations": [1, 7, 1, 3, 0, 8, -1], **about},
        {"time": 1, "kind": "fail", "micro_operations": [1, 7, 1, 3, 0, 8, -1], **about},
        {"time": 1, "kind": "info", "error": "lost", "micro_operations": [1, 7, 1, 3], **about},
    ) == (
        "Process 0 began transaction T4 (write 3 to key 7, read key 8).",
        "At the same moment, transaction T4 (write 3 to key 7, read key 8) by process 0 certainly failed.",
        "At the same moment, the outcome of transaction T4 (write 3 to key 7) by process 0 is unknown (lost).",
    )
    done = {"time": 1, "kind": "ok", **about}
    (short,) = narrated({"micro_operations": [0, 7, 2, 3, 5, 0, 8, 0], **done})
    micros = "read 3, 5 of key 7, read nothing of key 8"
    assert (
        short == f"Process 0 received the answer that transaction T4 ({micros}) had been committed."
    )
    (long,) = narrated({"micro_operations": [0, 7, 10, *range(10), *[1, 7, 1, 3] * 8], **done})
    micros = f"read …, 2, 3, 4, 5, 6, 7, 8, 9 of key 7, {', '.join(['write 3 to key 7'] * 7)}, …"
    assert (
        long == f"Process 0 received the answer that transaction T4 ({micros}) had been committed."
    )


def test_a_log_of_which_only_the_answers_are_known_is_told_without_gaps() -> None:
    columns = {"topic": "x", "partition": 0}
    assert narrated(
        {"time": 1, "kind": "fail", "f": "send", "value": 7, **columns},
        {"time": 1, "kind": "ok", "f": "poll", "offsets": [0], "values": [7], **columns},
    ) == (
        "The send of value 7 to x-0 by process 0 certainly failed.",
        "At the same moment, process 0 polled x-0 and received offset 0 (value 7).",
    )


def test_what_another_system_may_do_is_not_put_down_to_elections() -> None:
    event = {"time": 1, "kind": "ok", "f": "dequeue", "value": 7}
    assert narrated(event, verdict=Verdict.VALID) == (
        "Process 0 received 7 from dequeue of the object.",
    )
