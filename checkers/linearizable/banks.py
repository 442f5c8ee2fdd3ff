"""bank-total, bank-accounts, bank-negative: transfers between accounts, and reads of all balances.

* **bank-total**: the balances of every read have the same sum: transfers move money, and snapshots see none in between.
  The history does not state the sum, so that of most reads counts. Two different sums contradict each other anyway.
  Smallest break: a read returns 5 and 5, another one 4 and 5.
* **bank-accounts**: every read has the accounts of most reads, each with a whole number.
  Smallest break: a read lacks an account that two others have.
* **bank-negative**: no balance is below 0. Where overdrafts are allowed, leave it out with ``--checkers``.
  Smallest break: a read returns −1 and 11.

A read that has other accounts is not added up. Source: Jepsen's bank workload.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Final, TypeVar

import numpy as np

from nemesis.checkers.breaks import totals as breaks
from nemesis.checkers.framework.findings import finding
from nemesis.checkers.framework.fold import Results, conclude
from nemesis.checkers.framework.model import Finding
from nemesis.checkers.framework.property import Property
from nemesis.checkers.linearizable import phrases
from nemesis.checkers.linearizable.elements import Listed, answers
from nemesis.checkers.linearizable.object_check import ObjectCheck
from nemesis.checkers.linearizable.object_operations import OK, Operations
from nemesis.history.foreign.names import FIRST_NAME
from nemesis.history.sources import EventSource

FS: Final = ("read", "transfer")
READ: Final = 0
_Kind = TypeVar("_Kind", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a read returned."""

    position: int
    key: int
    balances: dict[int, int]
    """By account; from ``FIRST_NAME`` on it is not a number."""

    @property
    def accounts(self) -> frozenset[int]:
        return frozenset(self.balances)

    @property
    def total(self) -> int:
        return sum(self.balances.values())


class Bank(ObjectCheck):
    fs = FS
    lists = (FS[READ],)

    @classmethod
    def properties(cls) -> tuple[Property, ...]:
        return (BANK_TOTAL, BANK_ACCOUNTS, BANK_NEGATIVE)

    def decide(self, operations: Operations, lists: Listed) -> Results:
        snapshots = _snapshots(operations, lists)
        findings: dict[str, list[Finding]] = {decided.name: [] for decided in self.properties()}
        for _, group in groupby(
            sorted(snapshots, key=lambda read: read.key), lambda read: read.key
        ):
            for broken in _judged(operations, list(group)):
                findings[broken.property].append(broken)
        return [
            conclude(decided, checked=len(snapshots), findings=findings[decided.name])
            for decided in self.properties()
        ]


def _snapshots(operations: Operations, lists: Listed) -> list[Snapshot]:
    """The successful reads, in the order of their ends."""
    chosen, values = answers(operations, lists)
    flat: dict[int, list[int]] = {}
    for position, value in zip(chosen.tolist(), values.tolist(), strict=True):
        flat.setdefault(position, []).append(value)
    done = np.flatnonzero((operations.f == READ) & (operations.outcome == OK))
    done = done[np.argsort(operations.completed[done], kind="stable")]
    return [
        Snapshot(
            position,
            int(operations.key[position]),
            dict(zip(said[::2], said[1::2], strict=False)),
        )
        for position in done.tolist()
        for said in [flat.get(position, [])]
    ]


def _judged(operations: Operations, snapshots: Sequence[Snapshot]) -> Iterator[Finding]:
    """Yield the findings of one bank."""
    usual = _most([read.accounts for read in snapshots])
    example = next(read for read in snapshots if read.accounts == usual)
    comparable = []
    for read in snapshots:
        said = _wrong_accounts(read, usual)
        if said:
            other = None if read.accounts == usual else example.position
            yield _finding("bank-accounts", operations, said, read.position, other)
        else:
            comparable.append(read)
        for account, balance in read.balances.items():
            if balance < 0:
                said = f"Account {account} was read as {balance}."
                yield _finding("bank-negative", operations, said, read.position)
    if not comparable:
        return
    total = _most([read.total for read in comparable])
    witness = next(read for read in comparable if read.total == total)
    for read in comparable:
        if read.total != total:
            said = f"The balances of a read come to {read.total}, those of another one to {total}."
            yield _finding("bank-total", operations, said, read.position, witness.position)


def _wrong_accounts(read: Snapshot, usual: frozenset[int]) -> str:
    """What is wrong with the accounts of a read; nothing if all is right."""
    if extra := sorted(read.accounts - usual):
        return f"A read returned account {extra[0]}, which most reads do not have."
    if missing := sorted(usual - read.accounts):
        return f"A read lacks account {missing[0]}, which most reads have."
    for account, balance in read.balances.items():
        if balance >= FIRST_NAME:
            return f"Account {account} was read as {balance}, which is not a whole number."
    return ""


def _most(kinds: Sequence[_Kind]) -> _Kind:
    """The most frequent, the first of several."""
    return Counter(kinds).most_common(1)[0][0]


def _finding(
    name: str, operations: Operations, sentence: str, position: int, other: int | None = None
) -> Finding:
    key = phrases.key_name(int(operations.key[position]))
    return finding(name, key, sentence, *phrases.rows(operations, other, position))


BANK_TOTAL: Final = Property(
    name="bank-total",
    promise="The balances of every read have the same sum.",
    unit="reads",
    unknown="No read succeeded, or events cannot be paired to operations.",
    source="Jepsen's bank workload.",
    check=Bank,
    decided_from=frozenset({EventSource.CLIENTS}),
    is_self_evident=True,
    breaks=breaks.BANK_TOTAL,
)
BANK_ACCOUNTS: Final = replace(
    BANK_TOTAL,
    name="bank-accounts",
    promise="Every read has the same accounts, each with a balance.",
    breaks=breaks.BANK_ACCOUNTS,
)
BANK_NEGATIVE: Final = replace(
    BANK_TOTAL,
    name="bank-negative",
    promise="No account is overdrawn.",
    breaks=breaks.BANK_NEGATIVE,
)
