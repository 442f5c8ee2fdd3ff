"""long-fork: smallest breaks, every order of the writes tried out, and Jepsen's own histories."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from nemesis.checkers.breaks import forks as breaks
from nemesis.checkers.breaks.transactions import Micro, r, together, w
from nemesis.checkers.cycles.long_fork import LongFork
from nemesis.checkers.framework.model import Result, Verdict
from tests.checkers.histories import judge
from tests.nemesis.judging.foreign_judge import judged

KEYS = 4


def judged_reads(*transactions: Sequence[Micro]) -> Result:
    return judge(LongFork(), together(*transactions))["long-fork"]


def test_the_smallest_breaks() -> None:
    sentences = [
        judge(LongFork(), history)["long-fork"].findings[0].sentence for history in breaks.LONG_FORK
    ]
    assert sentences == [
        "T3 saw key 0 without key 1, and T4 saw key 1 without key 0.",
        "T4 saw key 0 without key 1, and T5 saw key 1 without key 2, and T6 saw key 2 without key 0.",
        "T2 read key 0 twice, as written and as not written.",
    ]


def test_what_other_transactions_do_leaves_it_open_and_hides_no_violation() -> None:
    fork = ([r(0, 1), r(1)], [r(1, 1), r(0)])
    for other in ([w(0, 2)], [w(2, 1), w(3, 1)], [w(2, 1), r(3)]):
        assert judged_reads([w(0, 1)], other, [r(0, 1)]).verdict is Verdict.UNKNOWN
        assert judged_reads([w(0, 1)], other, *fork).verdict is Verdict.INVALID
    assert judged_reads([r(0, 1)], [r(0, 2)]).verdict is Verdict.UNKNOWN
    assert judged_reads([w(0, 1)]).verdict is Verdict.UNKNOWN


def lines(*values: str, f: str = "txn") -> str:
    return "".join(
        f"{{:type :invoke, :f :{f}, :value nil, :process {process}}}\n"
        f"{{:type :ok, :f :{f}, :value {value}, :process {process}}}\n"
        for process, value in enumerate(values)
    )


def test_jepsens_histories() -> None:
    forked = lines("[[:r 0 1] [:r 1 1] [:r 2 nil]]", "[[:r 2 1] [:r 0 1] [:r 1 nil]]", f="read")
    assert judged(forked, "long-fork").verdict is Verdict.INVALID
    writes = lines("[[:w 0 1]]", "[[:w 1 1]]")
    agreeing = lines("[[:r 0 nil] [:r 1 1]]", "[[:r 1 1] [:r 0 1]]")
    assert judged(writes + agreeing, "long-fork").verdict is Verdict.VALID
    forked = lines("[[:r 0 nil] [:r 1 1]]", "[[:r 1 nil] [:r 0 1]]")
    assert judged(writes + forked, "long-fork").verdict is Verdict.INVALID


READS = st.lists(st.dictionaries(st.integers(0, KEYS - 1), st.booleans(), min_size=1), max_size=7)


def is_explained(reads: Sequence[dict[int, bool]]) -> bool:
    """Whether some order of the writes explains each read, by trying out each order."""
    return any(
        all(
            any(
                all(is_present == (key in permutation[:length]) for key, is_present in read.items())
                for length in range(KEYS + 1)
            )
            for read in reads
        )
        for permutation in permutations(range(KEYS))
    )


@given(READS)
def test_every_order_of_the_writes_tried_out_agrees(reads: list[dict[int, bool]]) -> None:
    writes = [[w(key, 1)] for key in range(KEYS)]
    snapshots = [
        [r(key, 1) if is_present else r(key) for key, is_present in read.items()] for read in reads
    ]
    verdict = judged_reads(*writes, *snapshots).verdict
    assert (verdict is Verdict.INVALID) == (not is_explained(reads))
    assert (verdict is Verdict.UNKNOWN) == (not reads)


@given(
    st.permutations(range(8)), st.lists(st.tuples(st.integers(0, 8), st.sets(st.integers(0, 7))))
)
def test_reads_of_one_order_never_contradict(
    permutation: list[int], reads: list[tuple[int, set[int]]]
) -> None:
    writes = [[w(key, 1)] for key in range(8)]
    snapshots = [
        [r(key, 1) if key in permutation[:length] else r(key) for key in keys]
        for length, keys in reads
    ]
    assert judged_reads(*writes, *snapshots).verdict is not Verdict.INVALID
