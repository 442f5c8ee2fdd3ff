"""From rows to anomalies: the order of the steps, and which of them lists and registers have in common.

An anomaly is data here: its name, transactions, what shows it. ``explain`` tells it in words.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from nemesis.checkers.cycles import read_versions
from nemesis.checkers.cycles.edges import Edges
from nemesis.checkers.cycles.guarantees import broken_guarantee
from nemesis.checkers.cycles.initial import InitialValue, concluded, with_initial
from nemesis.checkers.cycles.internal import (
    contradicting_lists,
    contradicting_registers,
    lists_of_the_future,
)
from nemesis.checkers.cycles.key_options import WFR
from nemesis.checkers.cycles.key_orders import KeyOrders, key_orders
from nemesis.checkers.cycles.list_edges import list_edges, unread_edges
from nemesis.checkers.cycles.lookup import NOTHING, UNREAD
from nemesis.checkers.cycles.models import ANOMALIES, CYCLE_EXISTS, Guarantee, Level, Model
from nemesis.checkers.cycles.orders.problem import Problem
from nemesis.checkers.cycles.orders.verdict import CycleExists, of_lists, of_registers
from nemesis.checkers.cycles.process_order import process_edges
from nemesis.checkers.cycles.read_index import ReadIndex
from nemesis.checkers.cycles.read_versions import ReadVersions
from nemesis.checkers.cycles.register_edges import register_edges
from nemesis.checkers.cycles.search import Cycle, cycles_among
from nemesis.checkers.cycles.skipped_appends import skipped_append
from nemesis.checkers.cycles.transaction_rows import FAIL, Rows
from nemesis.checkers.cycles.transactions import (
    READ,
    UNKNOWN,
    Mask,
    MicroOperations,
    Transactions,
    transactions,
)
from nemesis.checkers.cycles.updates import Updates, list_versions, register_versions
from nemesis.checkers.cycles.version_orders import ListOrders
from nemesis.checkers.cycles.write_index import Writes
from nemesis.checkers.framework.arrays import Numbers
from nemesis.checkers.initial_values import NIL

NO_SESSIONS: Final = "no process has two committed transactions, one after the other"


@dataclass(frozen=True, slots=True)
class Occurrences:
    """Where an anomaly is, one entry per occurrence: a read (a micro-operation), a write (a number of a write)."""

    reads: Numbers = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    writes: Numbers = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def __len__(self) -> int:
        return max(len(self.reads), len(self.writes))


@dataclass(slots=True)
class Analysis:
    """All that is known of a history of transactions."""

    txns: Transactions
    micro: MicroOperations
    writes: Writes
    last_read: Numbers
    own: Mask
    """For each micro-operation, whether what it read last is its own transaction's."""
    list_orders: ListOrders | None = None
    """Of lists; registers have none."""
    occurrences: dict[str, Occurrences] = field(default_factory=dict)
    """By anomaly, where it is."""
    lost: tuple[Numbers, Numbers, Numbers, Numbers] | None = None
    """Lost updates: a read, its write, another read, its write."""
    cycles: dict[str, list[Cycle]] = field(default_factory=lambda: defaultdict(list))
    cycle_exists: CycleExists | None = None
    """That every order of versions has a cycle which the model forbids, or may have one."""
    key_orders: KeyOrders = field(default_factory=KeyOrders)
    """Orders of versions that the options about keys imply."""
    reads: int = 0
    """How many reads are known."""
    initial: int = NIL
    """The value of registers before any write."""
    suggestion: InitialValue | None = None
    """That value, if it was concluded from reads and not stated."""
    dependencies: int = 0
    has_sessions: bool = False
    """Whether some process has two committed transactions, one after the other."""


def analyse_lists(rows: Rows, model: Model, judged: Collection[str] = ANOMALIES.keys()) -> Analysis:
    """Analyse transactions that read lists and append to them; ``judged`` are the anomalies whose results are used."""
    analysis = _gathered(rows)
    txns, micro, writes, last_read = (
        analysis.txns,
        analysis.micro,
        analysis.writes,
        analysis.last_read,
    )
    list_orders = analysis.list_orders = ListOrders.of(micro, writes)
    read_index = ReadIndex.of(
        txns, micro, writes, list_orders.is_prefix, proves_commits=model.proves_commits
    )
    _common(analysis, read_index)
    analysis.occurrences["incompatible-order"] = _incompatible(micro, writes, list_orders)
    analysis.occurrences["duplicate-elements"] = Occurrences(reads=list_orders.repeats)
    if len(analysis.occurrences["G1a"]):
        analysis.occurrences["dirty-update"] = _dirty_updates(txns, writes, list_orders, read_index)
    _contradictions(
        analysis, contradicting_lists(micro), lists_of_the_future(micro, writes, read_index.reader)
    )
    version, versions = list_versions(micro, list_orders.first, list_orders.is_prefix)
    analysis.lost = Updates.of(micro, writes, analysis.own, version, versions).lost()
    edges = list_edges(txns, micro, writes, last_read, analysis.own, list_orders, read_index)
    _search(analysis, read_index, edges)
    if not _is_open(analysis, model, judged):
        return analysis
    if model.guarantee is not Guarantee.NONE:
        shown = read_versions.of_lists(micro, writes, list_orders, read_index.committed)
        _judge_guarantee(analysis, model, read_index, shown, edges)
        return analysis
    skipped = skipped_append(micro, writes, last_read, analysis.own, list_orders, read_index)
    if skipped is not None and model.level >= Level.READ_ATOMIC:
        analysis.cycle_exists = CycleExists(skipped=skipped)
        return analysis
    # Reads of a list without an order show none; of its appends one comes before another all the same.
    in_order = np.where(list_orders.ordered[micro.key], last_read, UNREAD)
    problem = Problem.of(
        txns, micro, writes, in_order, read_index, model.level, model.session_order
    )
    unread = unread_edges(writes, list_orders, read_index)
    analysis.cycle_exists = of_lists(txns, edges, unread, problem)
    return analysis


def analyse_registers(
    rows: Rows,
    model: Model,
    initial: int | None = NIL,
    *,
    has_real_time: bool = True,
    key_options: Collection[str] = (),
    judged: Collection[str] = ANOMALIES.keys(),
) -> Analysis:
    """Analyse transactions that read registers and write them; ``initial`` is None if it is not stated.

    ``key_options``: what else is known of the orders of versions (``key_orders``). ``judged``: the anomalies whose
    results are used.
    """
    analysis = _gathered(rows, initial, has_real_time=has_real_time)
    txns, micro, writes, last_read = (
        analysis.txns,
        analysis.micro,
        analysis.writes,
        analysis.last_read,
    )
    no_prefix = np.zeros(len(micro), dtype=np.bool_)
    read_index = ReadIndex.of(txns, micro, writes, no_prefix, proves_commits=model.proves_commits)
    _common(analysis, read_index)
    _contradictions(analysis, contradicting_registers(micro), _future_reads(analysis))
    version, versions = register_versions(micro, writes, last_read)
    updates = Updates.of(micro, writes, analysis.own, version, versions)
    analysis.lost = updates.lost()
    follow = model.level > Level.G0 or WFR in key_options
    edges = register_edges(
        txns,
        micro,
        writes,
        last_read,
        analysis.own,
        updates,
        version,
        read_index,
        writes_follow_reads=follow,
    )
    implied = analysis.key_orders = key_orders(
        txns,
        micro,
        writes,
        analysis.own,
        version,
        read_index,
        key_options,
        has_real_time=has_real_time,
    )
    edges = Edges.joined([edges, implied.edges(micro, writes, version, analysis.own)])
    _search(analysis, read_index, edges)
    if implied.contradicted is not None:
        analysis.cycle_exists = CycleExists(contradicted=implied.contradicted)
    elif not _is_open(analysis, model, judged):
        return analysis
    elif model.guarantee is not Guarantee.NONE:
        shown = read_versions.of_registers(micro, writes, last_read, read_index.committed)
        _judge_guarantee(analysis, model, read_index, shown, edges)
    else:
        problem = Problem.of(
            txns, micro, writes, last_read, read_index, model.level, model.session_order
        )
        ordered = (writes.txn[implied.before], writes.txn[implied.after])
        analysis.cycle_exists = of_registers(problem.with_ordered(*ordered))
    return analysis


def _judge_guarantee(
    analysis: Analysis, model: Model, read_index: ReadIndex, versions: ReadVersions, edges: Edges
) -> None:
    """Note whether no execution keeps the guarantee of a model."""
    if versions.edges is not None:
        edges = Edges.joined([edges, versions.edges])
    committed = np.flatnonzero(read_index.committed)
    decided = broken_guarantee(
        model.guarantee, analysis.txns, analysis.writes, committed, versions, edges
    )
    if isinstance(decided, str):
        analysis.cycle_exists = CycleExists(bound=decided)
    elif decided is not None:
        analysis.cycle_exists = CycleExists(guarantee=decided)


def _is_open(analysis: Analysis, model: Model, judged: Collection[str]) -> bool:
    """Whether only a search tells if a forbidden cycle exists; notes what is decided without.

    An anomaly that is not judged, or that the model does not count, does not decide it. A cycle of a name that is not
    judged is in every version order. A cycle that does not count hides others from the search.
    """
    if CYCLE_EXISTS not in judged or is_broken(analysis, model, judged):
        return False
    cycles = [cycles[0] for cycles in analysis.cycles.values() if cycles]
    certain = [cycle for cycle in cycles if model.forbids(ANOMALIES[cycle.name])]
    if certain:
        analysis.cycle_exists = CycleExists(certain=certain[0])
        return False
    uncounted = [cycle.name for cycle in cycles if model.reaches(ANOMALIES[cycle.name])]
    is_by_name = analysis.list_orders is not None and model.level is Level.SERIAL
    if uncounted and model.level > Level.G1 and not is_by_name:
        bound = f"a {uncounted[0]}, which does not count, is in every order"
        analysis.cycle_exists = CycleExists(bound=bound)
    return not uncounted


def require_sessions(analysis: Analysis, model: Model, judged: Collection[str]) -> None:
    """Note that a model of sessions is undecided in a history without them, unless it is broken."""
    is_decided = analysis.cycle_exists is not None or is_broken(analysis, model, judged)
    if model.is_of_sessions and not analysis.has_sessions and not is_decided:
        analysis.cycle_exists = CycleExists(bound=NO_SESSIONS)


def is_broken(analysis: Analysis, model: Model, judged: Collection[str] = ANOMALIES.keys()) -> bool:
    """Whether an anomaly is known by name that is judged, and that the model forbids."""
    names = [name for name, occurrences in analysis.occurrences.items() if len(occurrences)]
    names += [name for name, cycles in analysis.cycles.items() if cycles]
    if analysis.lost is not None and len(analysis.lost[0]):
        names.append("lost-update")
    return any(name in judged and model.forbids(ANOMALIES[name]) for name in names)


def _contradictions(analysis: Analysis, internal: Numbers, future: Numbers) -> None:
    """Contradictions inside transactions; a read of what is written only later is one, too."""
    analysis.occurrences["future-read"] = Occurrences(reads=future)
    analysis.occurrences["internal"] = Occurrences(reads=np.union1d(internal, future))


def _gathered(rows: Rows, initial: int | None = NIL, *, has_real_time: bool = True) -> Analysis:
    txns, micro = transactions(rows)
    suggestion = concluded(txns, micro, has_real_time=has_real_time) if initial is None else None
    if initial is None:
        initial = NIL if suggestion is None else suggestion.value
    micro = with_initial(micro, initial)
    writes = Writes.of(micro, initial)
    last_read = writes.last_read(micro)
    own = writes.own(micro, last_read)
    return Analysis(txns, micro, writes, last_read, own, initial=initial, suggestion=suggestion)


def _common(analysis: Analysis, read_index: ReadIndex) -> None:
    """What lists and registers have in common, except cycles."""
    writes, micro, last_read = analysis.writes, analysis.micro, analysis.last_read
    analysis.reads = int((last_read >= NOTHING).sum()) + len(read_index.garbage)
    analysis.occurrences["garbage-read"] = Occurrences(reads=read_index.garbage)
    aborted = np.flatnonzero((analysis.txns.outcome[writes.txn] == FAIL) & (read_index.reader >= 0))
    analysis.occurrences["G1a"] = Occurrences(reads=read_index.reader[aborted], writes=aborted)
    reads = np.flatnonzero(last_read >= 0)
    last = last_read[reads]
    halfway = ~writes.is_last[last] & (writes.txn[last] != micro.txn[reads])
    analysis.occurrences["G1b"] = Occurrences(reads=reads[halfway], writes=last[halfway])


def _future_reads(analysis: Analysis) -> Numbers:
    """Reads of what the transaction itself wrote only later."""
    reads = np.flatnonzero(analysis.own)
    future: Numbers = reads[analysis.writes.micro[analysis.last_read[reads]] > reads]
    return future


def _incompatible(micro: MicroOperations, writes: Writes, list_orders: ListOrders) -> Occurrences:
    """Lists that are not how the longest one of their key begins, and longest lists with reversed appends."""
    is_other = (micro.code == READ) & (micro.count > UNKNOWN) & ~list_orders.is_prefix
    others = np.flatnonzero(is_other & ~writes.ambiguous[micro.key])
    appends = list_orders.reversed_appends(writes)
    return Occurrences(
        reads=np.concatenate((others, list_orders.longest[writes.key[appends]])),
        writes=np.concatenate((np.full(len(others), -1, dtype=np.int64), appends)),
    )


def _dirty_updates(
    txns: Transactions, writes: Writes, list_orders: ListOrders, read_index: ReadIndex
) -> Occurrences:
    """Failed appends that a committed transaction appended after."""
    known = list_orders.write >= 0
    write = list_orders.write[known]
    is_live = read_index.committed[writes.txn[write]]
    last_live = np.full(len(writes.ambiguous), -1, dtype=np.int64)
    last_live[writes.key[write[is_live]]] = np.flatnonzero(is_live)
    is_failed = txns.outcome[writes.txn[write]] == FAIL
    covered = np.flatnonzero(is_failed & (np.arange(len(write)) < last_live[writes.key[write]]))
    return Occurrences(writes=write[covered])


def _search(analysis: Analysis, read_index: ReadIndex, edges: Edges) -> None:
    """Look for cycles where there can be any."""
    txns = analysis.txns
    analysis.dependencies = len(edges)
    sessions = process_edges(txns, read_index.committed)
    analysis.has_sessions = len(sessions) > 0
    for cycle in cycles_among(txns, edges, sessions):
        analysis.cycles[cycle.name].append(cycle)
