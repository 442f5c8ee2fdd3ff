"""Operations in the histories of other systems, which ``nemesis.history.foreign`` reads.

Writer: ``nemesis check FILE --workload NAME``. Processes have the names that the file gives them. Keys and values are
never negative, except what is added to a ``pn-counter`` or read from it, and balances. A value that is not a number
from 0 to 2**62 − 1 has a number from 2**62 on, and ``names.json`` in the run's directory says which. An ``ok`` repeats
the columns of its ``invoke``, a ``fail`` or ``info`` may have ``error``.
"""

from __future__ import annotations

from nemesis.history.events import Records, Word
from nemesis.history.vocabulary.clients import OperationView
from nemesis.history.vocabulary.declaring import View, answers, invokes

REGISTERS = ("register", "cas-register")
SETS = ("set", "linearizable-set")
EVENTUAL_COUNTERS = ("g-counter", "pn-counter")
COUNTERS = ("counter", *EVENTUAL_COUNTERS)
QUEUES = ("queue", "fifo-queue")
INSERTS = ("causal-reverse", "sequential")
TRANSACTIONS = ("list-append", "rw-register", "multi-register", "long-fork")
TEXTS = ("key-value",)
KEY_MAPS = ("monotonic-keys",)


class ObjectView(OperationView, frozen=True, kw_only=True):
    """An operation on the only object, or on the object of ``key``."""

    key: int | None = None


@invokes("write", workloads=(*REGISTERS, *INSERTS))
@answers("write", workloads=(*REGISTERS, *INSERTS))
@invokes("add", workloads=(*SETS, *COUNTERS))
@answers("add", workloads=(*SETS, *COUNTERS))
@invokes("enqueue", workloads=QUEUES)
@answers("enqueue", workloads=QUEUES)
class Put(ObjectView, frozen=True, kw_only=True):
    """A client writes a value to a register, adds it to a set or a counter, or puts it into a queue."""

    value: int | None = None
    """Unset if the file does not say which."""


@invokes("cas", workloads=("cas-register",))
@answers("cas", workloads=("cas-register",))
class CompareAndSet(ObjectView, frozen=True, kw_only=True):
    """A client replaces the value of a register if it is the old one; ``fail``: it was another one."""

    values: list[int] | None = None
    """The old and the new value."""


@invokes("put", "append", workloads=TEXTS)
@answers("put", "append", workloads=TEXTS)
class PutText(ObjectView, frozen=True, kw_only=True):
    """A client replaces the text of a key, or adds to it."""

    values: list[int] | None = None
    """The characters, as code points."""


@answers("get", workloads=TEXTS)
class GetTextOk(ObjectView, frozen=True, kw_only=True):
    """The client has read the text of a key."""

    values: list[int] | None = None
    """The characters, as code points."""


@invokes("acquire", "release", workloads=("mutex",))
@answers("acquire", "release", workloads=("mutex",))
@invokes("read", workloads=(*REGISTERS, *SETS, *COUNTERS, "bank", *INSERTS))
@invokes("final-read", workloads=EVENTUAL_COUNTERS)
@invokes("get", workloads=TEXTS)
@invokes("generate", workloads=("unique-ids",))
@invokes("dequeue", "drain", workloads=QUEUES)
class Take(ObjectView, frozen=True, kw_only=True):
    """A client acquires or releases a mutex, reads an object, takes from a queue, or generates an id."""


@answers("read", workloads=(*REGISTERS, *COUNTERS))
@answers("final-read", workloads=EVENTUAL_COUNTERS)
@answers("generate", workloads=("unique-ids",))
@answers("dequeue", workloads=QUEUES)
class TakeOk(Take, frozen=True, kw_only=True):
    """The client has read, taken or generated a value."""

    value: int | None = None
    """Unset: the register has its initial value, or the queue was empty."""


@answers("read", workloads=(*SETS, *INSERTS))
@answers("drain", workloads=QUEUES)
class TakeAllOk(Take, frozen=True, kw_only=True):
    """The client has read a collection, or taken all of a queue."""

    values: list[int] | None = None
    """−1: a subkey that is nil."""


@answers("read", workloads=("bank",))
class BalancesOk(Take, frozen=True, kw_only=True):
    """The client has read all balances."""

    values: list[int] | None = None
    """Each account and its balance, which from 2**62 on is a name."""


@invokes("transfer", workloads=("bank",))
@answers("transfer", workloads=("bank",))
class Transfer(ObjectView, frozen=True, kw_only=True):
    """A client moves an amount from one account to another one."""

    values: list[int] | None = None
    """The two accounts and the amount."""


@invokes("read", "inc", workloads=KEY_MAPS)
class ReadKeys(ObjectView, frozen=True, kw_only=True):
    """A client reads several keys, or increments some."""


@answers("read", "inc", workloads=KEY_MAPS)
class ReadKeysOk(ReadKeys, frozen=True, kw_only=True):
    """The client has read or incremented keys."""

    values: list[int] | None = None
    """Each key and its value; −2**62 is nil."""


@invokes("insert", workloads=("predicate-inserts",))
@answers("insert", workloads=("predicate-inserts",))
class Insert(ObjectView, frozen=True, kw_only=True):
    """A client inserts a row of a key."""

    values: list[int] | None = None
    """Two ids; −1: nil."""


@invokes("txn", workloads=TRANSACTIONS)
@answers("txn", workloads=TRANSACTIONS)
class Transaction(OperationView, frozen=True, kw_only=True):
    """A client runs a transaction; its ``ok`` has all micro-operations again, with what was read."""

    micro_operations: list[int] | None = None


class LogView(OperationView, frozen=True, kw_only=True):
    """An operation on one log; the log is partition 0 of the topic of its name."""

    part_of: Word
    topic: Word | None = None
    partition: int | None = None


@invokes("send", workloads=("kafka",))
class ForeignSend(LogView, frozen=True, kw_only=True):
    """A client appends a value to a log."""

    value: int | None = None
    acks: int | None = None
    delivery: Word | None = None


@answers("send", workloads=("kafka",))
class ForeignSendOk(ForeignSend, frozen=True, kw_only=True):
    """The value is in the log."""

    offset: Records | None = None


@invokes("poll", workloads=("kafka",))
class ForeignPoll(LogView, frozen=True, kw_only=True):
    """A client reads a log. Its position is unknown."""


@answers("poll", workloads=("kafka",))
class ForeignPollOk(ForeignPoll, frozen=True, kw_only=True):
    """The client has records, or none."""

    offsets: list[Records] | None = None
    values: list[int] | None = None


class OtherOperation(View, frozen=True, kw_only=True):
    """An operation of any other function: no check reads it."""

    f: Word
    original: str
    op: int | None = None
    error: Word | None = None
