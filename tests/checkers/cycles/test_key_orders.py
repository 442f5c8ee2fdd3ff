"""Options about keys: what they let a version order conclude, against all version orders of small histories."""

from __future__ import annotations

from itertools import permutations, product
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nemesis.checkers.breaks.transactions import Micro, history, r, txn, w
from nemesis.checkers.cycles.analysis import analyse_registers, is_broken
from nemesis.checkers.cycles.check import RwRegister
from nemesis.checkers.cycles.key_options import LINEARIZABLE, SEQUENTIAL, WFR
from nemesis.checkers.cycles.models import MODELS, Model
from nemesis.checkers.framework.model import Verdict
from tests.checkers.cycles.brute_force import Txn
from tests.checkers.cycles.random_histories import tiny
from tests.checkers.cycles.version_orders import FROM, LEVELS, SESSIONS, Registers, rows_of
from tests.checkers.histories import judge

ORDER_OF = {SEQUENTIAL: "process", LINEARIZABLE: "realtime", WFR: ""}
Versions = dict[int, tuple[Txn, ...]]


class Key:
    """One key of a history: with which version each transaction begins, and which one it leaves; 0 is the initial."""

    def __init__(self, registers: Registers, key: int, versions: tuple[Txn, ...]) -> None:
        self.versions = versions
        self.begins: dict[int, int] = {}
        self.leaves: dict[int, int] = {}
        for t in registers.committed:
            self._add(registers, t, key)

    def _add(self, registers: Registers, t: Txn, key: int) -> None:
        on_key = [m for m in t.micro if m.key == key]
        if t in self.versions:
            self.begins[t.op] = self.leaves[t.op] = 1 + self.versions.index(t)
        if not on_key or on_key[0].is_write or t.kind != "ok":
            return
        first = on_key[0]
        position = 0
        if first.read:
            writer = registers.written[key, first.read[0]]
            values = [m.value for m in writer.micro if m.is_write and m.key == key]
            if writer is t or writer not in self.versions or values[-1] != first.read[0]:
                return
            position = 1 + self.versions.index(writer)
        self.begins[t.op] = position
        self.leaves.setdefault(t.op, position)

    def keeps(self, before: Registers, option: str) -> bool:
        """Whether no transaction begins with an older version than those before it left."""
        if any(self.begins[op] > self.leaves[op] for op in self.begins):
            return False
        return option == WFR or all(
            self.leaves[a] <= self.begins[b]
            for a, b in before.sessions
            if a in self.leaves and b in self.begins
        )

    def is_explained(self, before: Registers) -> bool:
        """Whether some order of all its transactions explains their reads, with this order of versions."""
        for line in permutations(sorted(self.begins)):
            if any((b, a) in before.sessions for n, a in enumerate(line) for b in line[n + 1 :]):
                continue
            present = 0
            for op in line:
                is_write = any(op == t.op for t in self.versions)
                is_read = self.begins[op] != self.leaves[op] or not is_write
                if is_read and self.begins[op] != present:
                    break
                if is_write:
                    if self.leaves[op] != present + 1:
                        break
                    present += 1
            else:
                return True
        return False


def keys_of(registers: Registers, chosen: Versions) -> list[Key]:
    keys = {m.key for t in registers.committed for m in t.micro}
    return [Key(registers, key, chosen.get(key, ())) for key in keys]


def allows(txns: list[Txn], session: str, level: str, option: str, *, is_strict: bool) -> bool:
    """Whether some version order keeps the model and the option; strictly, as some order of each key's transactions."""
    registers, before = Registers(txns, session), Registers(txns, ORDER_OF[option])
    for chosen in registers.version_orders():
        keys = keys_of(registers, chosen)
        kept = (k.is_explained(before) if is_strict else k.keeps(before, option) for k in keys)
        if all(kept) and not registers._is_forbidden(level, chosen):
            return True
    return False


def is_convicted(txns: list[Txn], model: Model, option: str) -> bool:
    analysis = analyse_registers(rows_of(txns), model, key_options=[option])
    exists = analysis.cycle_exists
    assert exists is None or not exists.bound
    return is_broken(analysis, model) or exists is not None


def agree(txns: list[Txn], option: str) -> set[str]:
    """Compare under each model, and return those that convict."""
    convicting = set()
    for prefix, session in SESSIONS.items():
        broken = Registers(txns, session).broken()
        for number, level in enumerate(LEVELS):
            model = MODELS[prefix + level]
            wrong = any(FROM[name] <= number for name in broken)
            if not wrong and not allows(txns, session, level, option, is_strict=False):
                wrong = True
                # Sound for its own sake: no order of each key's transactions explains the reads, either.
                assert not allows(txns, session, level, option, is_strict=True), (option, txns)
            assert is_convicted(txns, model, option) == wrong, (model.name, option, txns)
            if wrong:
                convicting.add(model.name)
    return convicting


@pytest.mark.parametrize("option", ORDER_OF)
def test_some_histories_agree_with_all_version_orders(option: str) -> None:
    convicting = [agree(tiny(Random(seed), lists=False), option) for seed in range(24)]
    assert sum(bool(names) for names in convicting) > 3
    assert sum(not names for names in convicting) > 3


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("option", ORDER_OF)
def test_thousands_of_histories_agree_with_all_version_orders(option: str) -> None:
    convicting = [agree(tiny(Random(seed), lists=False), option) for seed in range(1000, 4000)]
    assert sum(bool(names) for names in convicting) > 300


def some_micro(
    rng: Random, state: dict[int, int], values: list[int]
) -> tuple[list[Micro], dict[int, int]]:
    """What a transaction does that has this state before it: micro-operations, and what it writes."""
    state, written = dict(state), {}
    micro = []
    for _ in range(rng.randint(1, 3)):
        key = rng.randrange(2)
        if rng.random() < 0.5:
            values.append(len(values) + 1)
            state[key] = written[key] = values[-1]
            micro.append(w(key, values[-1]))
        else:
            micro.append(r(key, state[key]) if key in state else r(key))
    return micro, written


def snapshots(rng: Random, *, is_serial: bool) -> list[Txn]:
    """Transactions that read at one moment and write at another, both while they last; the first to commit wins.

    If it is serial, both moments are the same.
    """
    spans = []
    clock = 0
    for op in range(1, rng.randint(3, 12)):
        began = clock + rng.randint(0, 3)
        times = sorted(rng.sample(range(1, 20), 3))
        spans.append((op, began, *(began + time for time in times)))
        clock += rng.choice([0, 4, 9])
    committed: list[tuple[int, dict[int, int]]] = []
    values: list[int] = []
    txns = []
    for op, began, read_time, commit_time, ended in sorted(
        spans, key=lambda span: (span[3], span[0])
    ):
        read_time = commit_time if is_serial else read_time
        state: dict[int, int] = {}
        for time, written in committed:
            if time <= read_time:
                state |= written
        micro, written = some_micro(rng, state, values)
        is_late = any(time > read_time and set(other) & set(written) for time, other in committed)
        if not is_late:
            committed.append((commit_time, written))
        kind = "fail" if is_late else rng.choice(["ok", "ok", "ok", "info"])
        txns.append(Txn(op, tuple(micro), kind, began, ended, f"p{op}"))
    return txns


def stale_replicas(rng: Random) -> list[Txn]:
    """Processes that read what may be old, never older than before; who writes works on the newest state."""
    log: list[dict[int, int]] = [{}]
    position = dict.fromkeys("abc", 0)
    values: list[int] = []
    txns = []
    for op in range(1, rng.randint(3, 14)):
        process = rng.choice("abc")
        position[process] = rng.randint(position[process], len(log) - 1)
        draft = rng.getstate()
        micro, written = some_micro(rng, log[position[process]], list(values))
        if written:
            rng.setstate(draft)
            micro, written = some_micro(rng, log[-1], values)
            log.append(log[-1] | written)
            position[process] = len(log) - 1
        txns.append(Txn(op, tuple(micro), "ok", 10 * op, 10 * op + 5, process))
    return txns


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32))
def test_correct_histories_are_not_convicted(seed: int) -> None:
    rng = Random(seed)
    serial, isolated, stale = (
        snapshots(rng, is_serial=True),
        snapshots(rng, is_serial=False),
        stale_replicas(rng),
    )
    for option, prefix in product(ORDER_OF, SESSIONS):
        assert not is_convicted(serial, MODELS[prefix + "serializable"], option)
        assert not is_convicted(isolated, MODELS[prefix + "snapshot-isolation"], option)
    for option, prefix in product([SEQUENTIAL, WFR], ["", "strong-session-"]):
        assert not is_convicted(stale, MODELS[prefix + "serializable"], option)


OF_KEYS = RwRegister(MODELS["serializable"], key_options=[SEQUENTIAL])
TIMED = RwRegister(MODELS["serializable"], key_options=[LINEARIZABLE])


def test_smallest_a_process_reads_nil_after_its_own_write() -> None:
    events = history(txn(1, w(5, 1), process="a"), txn(2, r(5), process="a"))
    assert (
        judge(RwRegister(MODELS["serializable"]), events)["cycle-exists"].verdict is Verdict.VALID
    )
    for check in (OF_KEYS, TIMED):
        (finding,) = judge(check, events)["cycle-exists"].findings
        assert finding.verdict is Verdict.INVALID
        assert finding.sentence.startswith("No order of the versions of key 5 keeps --")
        assert finding.steps == (
            "1 comes before nil: T1 had 1 when it ended, and T2 began later with nil.",
            "The initial value, nil, comes before 1.",
        )


def test_smallest_another_process_reads_nil_after_the_write() -> None:
    events = history(txn(1, w(5, 1)), txn(2, r(5)))
    assert judge(OF_KEYS, events)["cycle-exists"].verdict is Verdict.VALID
    assert judge(TIMED, events)["cycle-exists"].verdict is Verdict.INVALID


def test_versions_that_come_before_each_other() -> None:
    events = history(
        txn(1, w(5, 1)),
        txn(2, w(5, 2)),
        txn(3, r(5, 1), process="a"),
        txn(4, r(5, 2), process="a"),
        txn(5, r(5, 2), process="b"),
        txn(6, r(5, 1), process="b"),
    )
    (finding,) = judge(OF_KEYS, events)["cycle-exists"].findings
    assert finding.steps == (
        "1 comes before 2: T3 had 1 when it ended, and T4 began later with 2.",
        "2 comes before 1: T5 had 2 when it ended, and T6 began later with 1.",
    )


def test_write_skew_by_the_order_of_a_key_has_a_name() -> None:
    """Nothing else states that the first write of each key comes first: no transaction reads the later one."""
    events = history(
        txn(1, w(5, 1)),
        txn(2, w(6, 2)),
        txn(3, r(5, 1), w(6, 4), index=(30, 60)),
        txn(4, r(6, 2), w(5, 3), index=(31, 61)),
    )
    assert all(result.verdict is Verdict.VALID for result in judge(OF_KEYS, events).values())
    (finding,) = judge(TIMED, events)["G2-item"].findings
    assert finding.steps[0] == (
        "T3 comes before T4: T3 read 1 of key 5, and T4 replaced it by 3 "
        "(by --linearizable-keys, T1 had 1 when it ended, and T4 began later with 3)."
    )


def test_wfr_keys_counts_under_read_uncommitted() -> None:
    events = history(
        txn(1, r(5, 2), w(5, 1), index=(10, 40)), txn(2, r(5, 1), w(5, 2), index=(11, 41))
    )
    model = MODELS["read-uncommitted"]
    assert judge(RwRegister(model), events)["G0"].verdict is Verdict.VALID
    assert judge(RwRegister(model, key_options=[WFR]), events)["G0"].verdict is Verdict.INVALID


def test_without_real_time_linearizable_keys_are_sequential() -> None:
    check = RwRegister(MODELS["serializable"], has_real_time=False, key_options=[LINEARIZABLE])
    assert (
        judge(check, history(txn(1, w(5, 1)), txn(2, r(5))))["cycle-exists"].verdict
        is Verdict.VALID
    )


def test_writes_of_two_keys_in_opposite_sequences() -> None:
    events = history(
        txn(1, w(5, 1), w(6, 2), index=(10, 90)),
        txn(2, w(5, 3), w(6, 4), index=(11, 91)),
        txn(3, r(5, 1), index=(12, 20), process="a"),
        txn(4, r(5, 3), index=(21, 29), process="a"),
        txn(5, r(6, 4), index=(13, 30), process="b"),
        txn(6, r(6, 2), index=(31, 39), process="b"),
    )
    check = RwRegister(MODELS["read-uncommitted"], key_options=[SEQUENTIAL])
    (finding,) = judge(check, events)["G0"].findings
    assert finding.steps[:2] == (
        (
            "T1 comes before T2: T1 wrote 1 to key 5, and T2 3 later "
            "(by --sequential-keys, T3 had 1 when it ended, and T4 began later with 3)."
        ),
        (
            "T2 comes before T1: T2 wrote 4 to key 6, and T1 2 later "
            "(by --sequential-keys, T5 had 4 when it ended, and T6 began later with 2)."
        ),
    )
