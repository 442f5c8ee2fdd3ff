"""From rows to anomalies: the order of the steps, and which of them lists and registers have in common.

An anomaly is data here: its name, transactions, what shows it. ``explain`` tells it in words.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np

from nemesis.checkers.cycles.edges import Edges
from nemesis.checkers.cycles.internal import contradicting_lists, contradicting_registers
from nemesis.checkers.cycles.list_edges import list_edges
from nemesis.checkers.cycles.lookup import NOTHING
from nemesis.checkers.cycles.models import Level, Model
from nemesis.checkers.cycles.process_order import process_edges
from nemesis.checkers.cycles.read_index import Seen
from nemesis.checkers.cycles.register_edges import register_edges
from nemesis.checkers.cycles.search import Cycle, cycles_among
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


@dataclass(frozen=True, slots=True)
class Places:
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
    orders: ListOrders | None = None
    """Of lists; registers have none."""
    places: dict[str, Places] = field(default_factory=dict)
    """By anomaly, where it is."""
    lost: tuple[Numbers, Numbers, Numbers, Numbers] | None = None
    """Lost updates: a read, its write, another read, its write."""
    cycles: dict[str, list[Cycle]] = field(default_factory=lambda: defaultdict(list))
    reads: int = 0
    """How many reads are known."""
    dependencies: int = 0


def analyse_lists(rows: Rows, model: Model) -> Analysis:  # noqa: ARG001 (lists show their order under any model)
    """Analyse transactions that read lists and append to them."""
    found = _gathered(rows)
    txns, micro, writes, last_read = found.txns, found.micro, found.writes, found.last_read
    orders = found.orders = ListOrders.of(micro, writes)
    seen = Seen.of(txns, micro, writes, orders.is_prefix)
    _common(found, seen)
    divided = (micro.code == READ) & (micro.count > UNKNOWN) & ~orders.is_prefix
    divided &= ~writes.ambiguous[micro.key]
    found.places["incompatible-order"] = Places(reads=np.flatnonzero(divided))
    found.places["duplicate-elements"] = Places(reads=orders.repeats)
    if len(found.places["G1a"]):
        found.places["dirty-update"] = _dirty_updates(txns, writes, orders, seen)
    internal = contradicting_lists(micro)
    found.places["internal"] = Places(reads=np.union1d(internal, _future_reads(found)))
    version, versions = list_versions(micro, orders.first, orders.is_prefix)
    found.lost = Updates.of(micro, writes, found.own, version, versions).lost()
    _search(found, seen, list_edges(txns, micro, writes, last_read, found.own, orders, seen))
    return found


def analyse_registers(rows: Rows, model: Model) -> Analysis:
    """Analyse transactions that read registers and write them."""
    found = _gathered(rows)
    txns, micro, writes, last_read = found.txns, found.micro, found.writes, found.last_read
    seen = Seen.of(txns, micro, writes, np.zeros(len(micro), dtype=np.bool_))
    _common(found, seen)
    internal = contradicting_registers(micro)
    found.places["internal"] = Places(reads=np.union1d(internal, _future_reads(found)))
    version, versions = register_versions(micro, writes, last_read)
    updates = Updates.of(micro, writes, found.own, version, versions)
    found.lost = updates.lost()
    follow = model.level > Level.G0
    edges = register_edges(
        txns,
        micro,
        writes,
        last_read,
        found.own,
        updates,
        version,
        seen,
        writes_follow_reads=follow,
    )
    _search(found, seen, edges)
    return found


def _gathered(rows: Rows) -> Analysis:
    txns, micro = transactions(rows)
    writes = Writes.of(micro)
    last_read = writes.last_read(micro)
    return Analysis(txns, micro, writes, last_read, writes.own(micro, last_read))


def _common(found: Analysis, seen: Seen) -> None:
    """What lists and registers have in common but for cycles."""
    writes, micro, last_read = found.writes, found.micro, found.last_read
    found.reads = int((last_read >= NOTHING).sum()) + len(seen.garbage)
    found.places["garbage-read"] = Places(reads=seen.garbage)
    aborted = np.flatnonzero((found.txns.outcome[writes.txn] == FAIL) & (seen.reader >= 0))
    found.places["G1a"] = Places(reads=seen.reader[aborted], writes=aborted)
    reads = np.flatnonzero(last_read >= 0)
    last = last_read[reads]
    halfway = ~writes.is_last[last] & (writes.txn[last] != micro.txn[reads])
    found.places["G1b"] = Places(reads=reads[halfway], writes=last[halfway])


def _future_reads(found: Analysis) -> Numbers:
    """Reads of what the transaction itself wrote only later."""
    reads = np.flatnonzero(found.own)
    future: Numbers = reads[found.writes.micro[found.last_read[reads]] > reads]
    return future


def _dirty_updates(txns: Transactions, writes: Writes, orders: ListOrders, seen: Seen) -> Places:
    """Failed appends that a committed transaction appended after."""
    known = orders.write >= 0
    write = orders.write[known]
    is_live = seen.committed[writes.txn[write]]
    last_live = np.full(len(writes.ambiguous), -1, dtype=np.int64)
    last_live[writes.key[write[is_live]]] = np.flatnonzero(is_live)
    is_failed = txns.outcome[writes.txn[write]] == FAIL
    covered = np.flatnonzero(is_failed & (np.arange(len(write)) < last_live[writes.key[write]]))
    return Places(writes=write[covered])


def _search(found: Analysis, seen: Seen, edges: Edges) -> None:
    """Look for cycles where there can be any."""
    txns = found.txns
    found.dependencies = len(edges)
    for cycle in cycles_among(txns, edges, process_edges(txns, seen.committed)):
        found.cycles[cycle.name].append(cycle)
