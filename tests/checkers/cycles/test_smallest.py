"""The smallest history of each anomaly, and what is said of it. All transactions at once, unless time matters."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest

from nemesis.checkers.breaks.cycles import ANOMALIES as BREAKS
from nemesis.checkers.breaks.cycles import ORDERED, SEQUENCES, WELL_FORMED
from nemesis.checkers.breaks.transactions import Micro, append, history, r, together, txn, w
from nemesis.checkers.cycles.check import ListAppend, RwRegister, Transactional
from nemesis.checkers.cycles.models import ANOMALIES, CYCLES, MODELS
from nemesis.checkers.framework.model import Finding, Verdict
from nemesis.history.events import Event
from tests.checkers.histories import as_row, finding, judge

LISTS, REGISTERS = ListAppend(), RwRegister()
STRICT = MODELS["strict-serializable"]
BEFORE = "have no order: each comes before the next, and the last before the first, "


def found(check: Transactional, events: Sequence[Event]) -> list[Finding]:
    """All findings, having seen that cutting the history anywhere changes nothing."""
    results = judge(check, events)
    for cut in range(1, len(events)):
        assert judge(check, events, [cut]) == results
    assert judge(check, events, range(len(events))) == results
    return [finding for result in results.values() for finding in result.findings]


def completions(events: Sequence[Event], *ops: int) -> list[Event]:
    """The last event of each of these transactions."""
    return [[event for event in events if event.op == op][-1] for op in ops]


def cycle(
    events: Sequence[Event],
    name: str,
    key: str,
    because: str,
    *steps: str,
    ops: Sequence[int] = (1, 2),
) -> Finding:
    names = [f"T{op}" for op in ops]
    listed = f"{', '.join(names[:-1])} and {names[-1]}"
    last = f"So {names[0]} would have come before itself."
    return Finding(
        property=name,
        verdict=Verdict.INVALID,
        key=key,
        sentence=f"{listed} {BEFORE}{because}.",
        steps=(*steps, last),
        events=tuple(map(as_row, completions(events, *ops))),
    )


# Cycles of dependencies.


def test_g0_two_lists_have_the_appends_in_opposite_order() -> None:
    (events,) = BREAKS["G0"]
    assert found(LISTS, events) == [
        cycle(
            events,
            "G0",
            "key 5, key 6",
            "by the order of their writes",
            "T1 comes before T2: T1 appended 1 to key 5, and T2 2 after it: T3 read [1, 2].",
            "T2 comes before T1: T2 appended 2 to key 6, and T1 1 after it: T3 read [2, 1].",
        )
    ]


def test_g0_registers_that_each_overwrote_what_it_read_of_the_other() -> None:
    events = together(
        [w(5, 1), r(6, 2), w(6, 3)],
        [w(6, 2), r(5, 1), w(5, 4)],
    )
    assert found(REGISTERS, events) == [
        cycle(
            events,
            "G0",
            "key 5, key 6",
            "by the order of their writes",
            "T1 comes before T2: T2 read 1 of key 5, which T1 wrote, and then wrote 4.",
            "T2 comes before T1: T1 read 2 of key 6, which T2 wrote, and then wrote 3.",
        )
    ]


def test_g1c_two_that_read_from_each_other() -> None:
    because = "by their writes and who read them"
    (lists,) = BREAKS["G1c"]
    assert found(LISTS, lists) == [
        cycle(
            lists,
            "G1c",
            "key 5, key 6",
            because,
            "T1 comes before T2: T2 read [1] of key 5, whose last element T1 appended.",
            "T2 comes before T1: T1 read [1] of key 6, whose last element T2 appended.",
        )
    ]
    registers = together([w(5, 1), r(6, 1)], [w(6, 1), r(5, 1)])
    assert found(REGISTERS, registers) == [
        cycle(
            registers,
            "G1c",
            "key 5, key 6",
            because,
            "T1 comes before T2: T2 read 1 of key 5, which T1 wrote.",
            "T2 comes before T1: T1 read 1 of key 6, which T2 wrote.",
        )
    ]


def test_g_single_one_write_of_a_transaction_is_seen_and_not_the_other() -> None:
    because = "by their writes, who read them, and one read that missed a write"
    (lists,) = BREAKS["G-single"]
    assert found(LISTS, lists) == [
        cycle(
            lists,
            "G-single",
            "key 6, key 5",
            because,
            "T1 comes before T2: T2 read [1] of key 6, whose last element T1 appended.",
            "T2 comes before T1: T2 read [] of key 5, without 1, which T1 appended.",
        )
    ]
    registers = together([w(5, 1), w(6, 1)], [r(5), r(6, 1)])
    assert found(REGISTERS, registers) == [
        cycle(
            registers,
            "G-single",
            "key 6, key 5",
            because,
            "T1 comes before T2: T2 read 1 of key 6, which T1 wrote.",
            "T2 comes before T1: T2 read nil of key 5, and T1 replaced it by 1.",
        )
    ]


def test_g_nonadjacent_two_readers_see_two_writes_in_opposite_order() -> None:
    (events,) = BREAKS["G-nonadjacent"]
    assert found(LISTS, events) == [
        cycle(
            events,
            "G-nonadjacent",
            "key 5, key 6",
            "by their writes, who read them, and reads that missed writes",
            "T1 comes before T2: T2 read [1] of key 5, whose last element T1 appended.",
            "T2 comes before T3: T2 read [] of key 6, without 1, which T3 appended.",
            "T3 comes before T4: T4 read [1] of key 6, whose last element T3 appended.",
            "T4 comes before T1: T4 read [] of key 5, without 1, which T1 appended.",
            ops=(1, 2, 3, 4),
        )
    ]


def test_g2_item_write_skew() -> None:
    because = "by reads that missed each other's writes"
    (lists,) = BREAKS["G2-item"]
    assert found(LISTS, lists) == [
        cycle(
            lists,
            "G2-item",
            "key 5, key 6",
            because,
            "T1 comes before T2: T1 read [] of key 5, without 1, which T2 appended.",
            "T2 comes before T1: T2 read [] of key 6, without 1, which T1 appended.",
        )
    ]
    registers = together([r(5), w(6, 1)], [r(6), w(5, 1)])
    assert found(REGISTERS, registers) == [
        cycle(
            registers,
            "G2-item",
            "key 5, key 6",
            because,
            "T1 comes before T2: T1 read nil of key 5, and T2 replaced it by 1.",
            "T2 comes before T1: T2 read nil of key 6, and T1 replaced it by 1.",
        )
    ]


# With the order of processes, and real time.

REASONS = {
    "process": "process p had ended T1 when it began T2",
    "realtime": "T1 had ended before T2 began",
}
OF_ORDER = {"process": ", and by the order of a process", "realtime": ", and by real time"}


@pytest.mark.parametrize("sequence", ["process", "realtime"])
def test_a_list_that_misses_what_was_appended_before(sequence: str) -> None:
    processes = ["p", "p"] if sequence == "process" else ["p", "q"]
    events = history(txn(1, append(5, 1), process=processes[0]), txn(2, r(5), process=processes[1]))
    assert found(ListAppend(STRICT), events) == [
        cycle(
            events,
            f"G-single-{sequence}",
            "key 5",
            "by their writes, who read them, and one read that missed a write" + OF_ORDER[sequence],
            f"T1 comes before T2: {REASONS[sequence]}.",
            "T2 comes before T1: T2 read [] of key 5, without 1, which T1 appended.",
        )
    ]


@pytest.mark.parametrize("sequence", SEQUENCES)
@pytest.mark.parametrize("name", ORDERED)
def test_each_cycle_with_an_order(sequence: str, name: str) -> None:
    (events,) = BREAKS[f"{name}-{sequence}"]
    assert [item.property for item in found(ListAppend(STRICT), events)] == [f"{name}-{sequence}"]
    serializable = ListAppend(MODELS["serializable"])
    assert [item.verdict for item in found(serializable, events)] == [Verdict.VALID]


@pytest.mark.parametrize("name", ORDERED)
def test_without_the_order_there_is_no_anomaly(name: str) -> None:
    assert found(ListAppend(STRICT), together(*ORDERED[name])) == []


def test_a_walk_of_several_dependencies_that_ends_before_it_begins() -> None:
    events = history(
        txn(1, r(5, 1), append(6, 1), index=(10, 20)),
        txn(2, append(5, 1), r(7, 1), index=(5, 90)),
        txn(3, append(7, 1), index=(30, 80)),
    )
    assert found(ListAppend(STRICT), events) == [
        cycle(
            events,
            "G1c-realtime",
            "key 7, key 5",
            "by their writes and who read them, and by real time",
            "T1 comes before T3: T1 had ended before T3 began.",
            "T3 comes before T2: T2 read [1] of key 7, whose last element T3 appended.",
            "T2 comes before T1: T1 read [1] of key 5, whose last element T2 appended.",
            ops=(1, 3, 2),
        )
    ]


# What is no cycle.


def test_g1a_a_failed_append_was_read() -> None:
    (events,) = BREAKS["G1a"]
    sentence = "T2 read [1] of key 5, and 1 is from T1, which failed."
    assert found(LISTS, events) == [finding("G1a", "key 5", sentence, *completions(events, 1, 2))]
    sentence = "T2 read 1 of key 5, and 1 is from T1, which failed."
    assert found(REGISTERS, events) == [
        finding("G1a", "key 5", sentence, *completions(events, 1, 2))
    ]


def test_g1b_what_was_read_was_overwritten_by_its_own_transaction() -> None:
    (events,) = BREAKS["G1b"]
    said = "T2 read {} of key 5, though T1, which {} 1, went on to write to it."
    rows = completions(events, 1, 2)
    assert found(LISTS, events) == [finding("G1b", "key 5", said.format("[1]", "appended"), *rows)]
    assert found(REGISTERS, events) == [finding("G1b", "key 5", said.format("1", "wrote"), *rows)]


def test_dirty_update_an_append_onto_a_failed_one() -> None:
    (events,) = BREAKS["dirty-update"]
    assert [item.property for item in found(LISTS, events)] == ["G1a", "dirty-update"]
    assert found(LISTS, events)[1] == finding(
        "dirty-update",
        "key 5",
        "T2 appended 2 to key 5 after 1, which is from T1, which failed.",
        *completions(events, 1, 2, 3),
    )


def test_garbage_read_of_what_nobody_wrote() -> None:
    (lists,) = BREAKS["garbage-read"]
    assert found(LISTS, lists) == [
        finding(
            "garbage-read",
            "key 5",
            "T2 read 9 of key 5, which nobody appended.",
            *completions(lists, 2),
        )
    ]
    events = together([w(5, 1)], [r(5, 9)])
    assert found(REGISTERS, events) == [
        finding(
            "garbage-read",
            "key 5",
            "T2 read 9 of key 5, which nobody wrote.",
            *completions(events, 2),
        )
    ]


def test_duplicate_elements_in_one_list() -> None:
    (events,) = BREAKS["duplicate-elements"]
    assert found(LISTS, events) == [
        finding(
            "duplicate-elements",
            "key 5",
            "T3 read [1, 2, 1] of key 5, in which 1 stands more than once.",
            *completions(events, 3),
        )
    ]


def test_incompatible_order_of_two_lists() -> None:
    (events,) = BREAKS["incompatible-order"]
    assert found(LISTS, events) == [
        Finding(
            property="incompatible-order",
            verdict=Verdict.INVALID,
            key="key 5",
            sentence="T4 read [1, 3] of key 5, and T5 read [1, 2, 3]: neither is how the other one begins.",
            steps=(
                "Elements are only ever appended to key 5: of two lists read of it, one begins with the other.",
                "In place 1 T4 read 3, T5 2.",
            ),
            events=tuple(map(as_row, completions(events, 4, 5))),
        )
    ]


@pytest.mark.parametrize(
    ("events", "said"),
    [
        (
            BREAKS["internal"][0],
            "T1 read [] of key 5, though just before it had appended 1.",
        ),
        (
            BREAKS["internal"][1],
            "T1 read [] of key 5, though just before it had read [1].",
        ),
    ],
)
def test_internal_contradiction_of_lists(events: Sequence[Event], said: str) -> None:
    assert found(LISTS, events) == [finding("internal", "key 5", said, *completions(events, 1))]


@pytest.mark.parametrize(
    ("micro", "said"),
    [
        ([w(5, 1), r(5)], "T1 read nil of key 5, though just before it had written 1."),
        ([w(5, 1), w(5, 2), r(5, 1)], "T1 read 1 of key 5, though just before it had written 2."),
    ],
)
def test_internal_contradiction_of_registers(micro: list[Micro], said: str) -> None:
    events = together(micro)
    assert found(REGISTERS, events) == [finding("internal", "key 5", said, *completions(events, 1))]


@pytest.mark.parametrize(
    ("check", "micro", "said"),
    [
        (LISTS, [r(5, 1), append(5, 1)], "T1 read [1] of key 5, which it appended only later."),
        (
            LISTS,
            [r(5, 1, 2), append(5, 1), append(5, 2)],
            "T1 read [1, 2] of key 5, though it appended 1 only later.",
        ),
        (REGISTERS, [r(5, 1), w(5, 1)], "T1 read 1 of key 5, which it wrote only later."),
    ],
)
def test_a_read_of_what_is_written_only_later(
    check: Transactional, micro: list[Micro], said: str
) -> None:
    events = together(micro)
    assert found(check, events) == [
        finding(name, "key 5", said, *completions(events, 1))
        for name in ("future-read", "internal")
    ]


def test_a_list_that_holds_what_is_appended_only_later_in_the_middle() -> None:
    events = together([append(5, 1)], [r(5, 2, 1), append(5, 2)])
    assert [item.property for item in found(LISTS, events)] == ["future-read", "internal", "G1c"]


def test_no_order_of_versions_keeps_the_model() -> None:
    """Both readers of the first version come before and after that of the second."""
    came_back, half_read = BREAKS["cycle-exists"]
    (item,) = found(REGISTERS, came_back)
    assert item.verdict is Verdict.INVALID
    assert item.key == "key 5"
    assert item.sentence == (
        "T3, T4, T5, T2 and T1 have no order that strict-serializable allows, in either order of the writes of a key."
    )
    first, second = item.steps
    assert first == (
        "If T2 wrote key 5 before T1, a cycle results: T4 comes before T1, because T4 read 2 of key 5, and T1 wrote "
        "it later; T1 comes before T3, because T3 read 1 of key 5, which T1 wrote; T3 comes before T4, because T3 had "
        "ended before T4 began."
    )
    assert second == (
        "If T1 wrote key 5 before T2, a cycle results: T5 comes before T2, because T5 read 1 of key 5, and T2 wrote "
        "it later; T2 comes before T4, because T4 read 2 of key 5, which T2 wrote; T4 comes before T5, because T4 had "
        "ended before T5 began."
    )
    assert found(RwRegister(MODELS["serializable"]), came_back) == []
    (item,) = found(REGISTERS, half_read)
    assert item.property == "cycle-exists"
    assert found(RwRegister(MODELS["read-committed"]), half_read) == []
    (item,) = found(RwRegister(MODELS["read-atomic"]), half_read)
    assert item.verdict is Verdict.INVALID


FRACTURED = [[w(5, 1)], [w(5, 2), w(6, 2)], [r(5, 2), r(6)]]
SKEWED = [
    [w(5, 1), w(6, 1)],
    [r(5, 1), r(6, 1), w(5, 2)],
    [r(5, 1), r(6, 1), w(6, 3)],
]
CAUSAL = [[w(5, 1)], [r(5, 1), w(6, 1)], [r(6, 1), r(5)]]


@pytest.mark.parametrize("check", [ListAppend, RwRegister])
@pytest.mark.parametrize(
    ("micro", "allowed_by", "forbidden_by"),
    [
        (FRACTURED, "read-committed", "read-atomic"),
        (CAUSAL, "read-atomic", "causal"),
        (
            [[r(5), w(5, 1)], [r(5), w(5, 2)]],
            "causal",
            "parallel-snapshot-isolation",
        ),
        (
            [[w(5, 1)], [w(6, 1)], [r(5, 1), r(6)], [r(6, 1), r(5)]],
            "parallel-snapshot-isolation",
            "snapshot-isolation",
        ),
        ([[r(5), r(6), w(5, 2)], [r(5), r(6), w(6, 3)]], "snapshot-isolation", "serializable"),
    ],
)
def test_where_each_model_begins(
    check: type[Transactional], micro: list[list[Micro]], allowed_by: str, forbidden_by: str
) -> None:
    """One history for each step of the models, of lists and of registers alike."""
    if check is ListAppend and micro is FRACTURED:
        micro = [[w(5, 1)], [w(5, 2), w(6, 2)], [r(5, 1, 2), r(6)]]
    verdicts = {
        name: {item.verdict for item in found(check(MODELS[name]), together(*micro))}
        for name in (allowed_by, forbidden_by)
    }
    assert Verdict.INVALID not in verdicts[allowed_by]
    assert Verdict.INVALID in verdicts[forbidden_by]


def test_write_skew_of_registers_whose_writers_read_the_first_version() -> None:
    (events,) = [together(*SKEWED)]
    invalid = [i.property for i in found(REGISTERS, events) if i.verdict is Verdict.INVALID]
    assert invalid == ["G2-item"]


def test_a_list_that_misses_a_later_version_than_the_next() -> None:
    """T3 read what T2 appended to key 6, and not to key 5, where another append came before."""
    events = together([append(5, 1)], [append(5, 2), append(6, 3)], [r(6, 3), r(5)], [r(5, 1, 2)])
    items = found(ListAppend(MODELS["read-atomic"]), events)
    (item,) = [item for item in items if item.verdict is Verdict.INVALID]
    assert item.property == "cycle-exists"
    assert item.sentence == "T2 and T3 have no order that read-atomic allows."
    assert item.steps == (
        (
            "A cycle is certain: T3 comes before T2, because T3 read [] of key 5, and T2 appended to it later; T2 "
            "comes before T3, because T3 read [3] of key 6, whose last element T2 appended."
        ),
    )


@pytest.mark.parametrize("model", ["parallel-snapshot-isolation", "snapshot-isolation"])
def test_one_of_two_appends_that_no_transaction_read_comes_first(model: str) -> None:
    """T2 did not read the append of T1 to key 5. So T1 came after T2, and did not read its append to key 6."""
    events = together([r(6), append(5, 1)], [r(5), append(5, 2), append(6, 3)])
    invalid = [i for i in found(ListAppend(MODELS[model]), events) if i.verdict is Verdict.INVALID]
    assert [item.property for item in invalid] == ["cycle-exists"]
    assert invalid[0].sentence == (
        f"T1 and T2 have no order that {model} allows, in either order of the appends of a key."
    )
    assert invalid[0].steps[0].startswith("If T1 appended to key 5 before T2, a cycle results: ")
    weaker = found(ListAppend(MODELS["causal"]), events)
    assert [i for i in weaker if i.verdict is Verdict.INVALID] == []


def test_a_stale_read_inside_a_process() -> None:
    """Its own second write is overlooked: no other dependency orders the two writes."""
    events = history(
        txn(1, w(5, 1), index=(10, 20), process="p"),
        txn(2, w(5, 2), index=(30, 40), process="p"),
        txn(3, r(5, 1), index=(50, 60), process="p"),
    )
    for name in ("strict-serializable", "strong-session-serializable", "strong-session-causal"):
        (item,) = found(RwRegister(MODELS[name]), events)
        assert (item.property, item.verdict) == ("cycle-exists", Verdict.INVALID)
    assert found(RwRegister(MODELS["serializable"]), events) == []


def test_a_search_that_is_too_long_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nemesis.checkers.cycles.orders.search.MAX_TRANSACTIONS", 4)
    result = judge(REGISTERS, BREAKS["cycle-exists"][0])["cycle-exists"]
    assert result.verdict is Verdict.UNKNOWN
    assert [item.sentence for item in result.findings] == [
        (
            "It is not decided whether an order of the versions keeps strict-serializable: the search orders at most 4 "
            "transactions, not 5."
        )
    ]


def test_lost_update_of_a_register() -> None:
    events = together([w(5, 1)], [r(5, 1), w(5, 2)], [r(5, 1), w(5, 3)])
    results = judge(REGISTERS, events)
    assert [name for name in results if results[name].findings] == ["lost-update", "G2-item"]
    assert results["lost-update"].findings == (
        Finding(
            property="lost-update",
            verdict=Verdict.INVALID,
            key="key 5",
            sentence="T2 and T3 both read 1 of key 5 and then wrote to it: one of the updates is lost.",
            steps=(
                "T2 read 1 of key 5, and then wrote 2.",
                "T3 read 1 of key 5, too, and then wrote 3.",
                "Had one of them come after the other, it would have read what that one left.",
            ),
            events=tuple(map(as_row, completions(events, 2, 3))),
        ),
    )


def test_lost_update_of_a_list_that_nobody_read_again() -> None:
    (events,) = BREAKS["lost-update"]
    assert {item.property for item in found(LISTS, events)} == {"lost-update", "G2-item"}


# What cannot be judged.


def test_a_value_that_was_written_twice_is_told_and_its_key_left_out() -> None:
    (events,) = WELL_FORMED
    sentence = (
        "1 was written to key 5 by T1 and by T2, so what was read of it cannot be told apart."
    )
    rows = completions(events, 1, 2)
    reported = finding("well-formed", "key 5", sentence, *rows, verdict=Verdict.UNKNOWN)
    assert found(LISTS, events) == [reported]


def test_what_cannot_be_read_is_told() -> None:
    events = [
        Event(time=1, process="p", kind="invoke", op=1, f="txn", micro_operations=[1, 5]),
        Event(time=2, process="q", kind="ok", op=2, f="txn", micro_operations=[1, 5, 1, 7]),
        Event(time=3, process="r", kind="invoke", f="txn", micro_operations=[1, 5, 1, 8]),
        *txn(3, r(5, 7)),
        *txn(3, r(5, 7), index=(50, 55)),
    ]
    said = [item.sentence for item in found(LISTS, events)]
    assert said == [
        "1 event of transactions has no op.",
        "2 events are a second invocation or completion of their op.",
        "1 transaction has a completion without an invocation.",
        "1 transaction has no readable list of micro-operations.",
    ]
    assert judge(LISTS, events)["G1c"].verdict is Verdict.VALID


def test_nothing_observed_is_unknown() -> None:
    events = together([append(5, 1)], [append(5, 2)])
    results = judge(LISTS, events)
    assert {result.verdict for name, result in results.items() if name in ANOMALIES} == {
        Verdict.UNKNOWN
    }
    elsewhere = [Event(time=1, process="p", kind="ok", op=1, f="read", key=1)]
    assert {result.verdict for result in judge(LISTS, elsewhere).values()} == {Verdict.UNKNOWN}


def test_a_model_forbids_what_is_not_above_it() -> None:
    forbidden = {
        name: {anomaly for anomaly in ANOMALIES if model.forbids(ANOMALIES[anomaly])}
        for name, model in MODELS.items()
    }
    assert forbidden["strict-serializable"] == set(ANOMALIES)
    assert set(ANOMALIES) - forbidden["serializable"] == {
        name for name in CYCLES if name.endswith(("-process", "-realtime"))
    }
    levels = [
        "serializable",
        "snapshot-isolation",
        "parallel-snapshot-isolation",
        "causal",
        "read-atomic",
        "read-committed",
    ]
    assert [forbidden[a] - forbidden[b] for a, b in pairwise(levels)] == [
        {"G2-item"},
        {"G-nonadjacent"},
        {"G-single", "lost-update"},
        set(),
        {"internal"},
    ]
    assert forbidden["repeatable-read"] == forbidden["serializable"]
    assert forbidden["read-uncommitted"] == {
        "cycle-exists",
        "garbage-read",
        "duplicate-elements",
        "G0",
    }


@pytest.mark.parametrize("far", [2**31, 2**62 + 5, -(2**40)])
def test_keys_and_values_of_any_size(far: int) -> None:
    """Small numbers are kept in four bytes, others in eight."""
    lists = together([append(far, far), r(6, 1)], [append(6, 1), r(far, far)])
    assert [item.property for item in found(LISTS, lists)] == ["G1c"]
    assert f"T2 read [{far}] of key {far}" in found(LISTS, lists)[0].steps[0]
    registers = together([w(far, far), r(6)], [w(6, 1), r(far)])
    assert [item.property for item in found(REGISTERS, registers)] == ["G2-item"]


def test_a_cycle_through_one_of_many_unread_appends_is_not_missed() -> None:
    """70 transactions read what 70 others then append to: each pair is an rw, and one of them is on a cycle."""
    appends = [[append(1, 100 + i), *([append(2, 5)] if i == 35 else [])] for i in range(70)]
    reads = [[r(1, 1), *([r(2, 5)] if i == 20 else [])] for i in range(70)]
    transactions = [[append(1, 1)], *appends, *reads]
    events = history(
        *(txn(n, *micro, index=(n, 1_000 + n)) for n, micro in enumerate(transactions, start=1))
    )
    results = judge(LISTS, events)
    broken = [item.property for result in results.values() for item in result.findings]
    assert broken == ["G-single"]


def test_a_list_with_a_later_append_only_lacks_the_earlier_one_of_the_transaction() -> None:
    """Whether the appends are committed or in doubt; 6 of 10,000 random histories showed it."""
    for kind in ("ok", "info"):
        events = history(
            txn(1, append(1, 1), append(1, 2), index=(1, 5), kind=kind),
            txn(2, r(1, 2), index=(6, 9)),
        )
        results = judge(LISTS, events)
        broken = [item.property for result in results.values() for item in result.findings]
        assert broken == ["G-single"]


def test_a_list_that_shows_appends_of_a_transaction_in_another_order_contradicts_it() -> None:
    """A later append hides that a read stopped half-way, so G1b does not find it."""
    events = history(
        txn(1, append(5, 1), append(5, 2), index=(1, 4)),
        txn(2, append(5, 3), index=(5, 6)),
        txn(3, r(5, 2, 1, 3), index=(7, 8)),
    )
    assert found(LISTS, events) == [
        finding(
            "incompatible-order",
            "key 5",
            "T3 read [2, 1, 3] of key 5, though T1 appended 1 to it before 2.",
            *completions(events, 1, 3),
        )
    ]
