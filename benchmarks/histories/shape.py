"""What a generated history is to be, and where in it everything stands: pure arithmetic.

Time is cut into *terms*. In term ``e`` one broker is controller (of controller epoch ``e + 1``), and every partition is
led in leader epoch ``e`` by the next of its replicas. A partition's records are spread evenly over the terms, and each
has a slot of time to itself, ``SLOT_NS``; all that happens because of a record happens in its slot, or in the slots of
the records that share its round. So parts of a history that are made apart fit together by time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

START_NS: Final = 1_000_000_000
SETUP_NS: Final = 1_000_000
"""From the start of a term to its first record."""
SLOT_NS: Final = 16_384
CLOSING_NS: Final = 1_000_000_000
"""From a term's last record to the next term."""
STRETCH_RECORDS: Final = 1 << 17
"""Records that are made at once."""


@dataclass(frozen=True, slots=True)
class Shape:
    """How many records, in how many partitions, and by whom they are kept."""

    records: int
    topics: int = 1
    partitions: int = 1
    """Of each topic."""
    hot_share: float | None = None
    """Which share of the records is in the first partition of the first topic; ``None``: as in any other."""
    brokers: int = 3
    replication_factor: int = 3
    terms: int = 3
    seed: int = 0

    def all_partitions(self) -> list[Partition]:
        """The partitions in the order of a history."""
        count = self.topics * self.partitions
        hot = self.records if count == 1 else round(self.records * (self.hot_share or 0))
        others = count if self.hot_share is None else max(1, count - 1)
        share, left = divmod(self.records - hot if count > 1 else 0, others)
        sizes = [share + (number < left) for number in range(count)]
        if self.hot_share is not None or count == 1:
            sizes = [hot, *(share + (number < left) for number in range(count - 1))]
        return [self._partition(number, size) for number, size in enumerate(sizes)]

    def _partition(self, number: int, records: int) -> Partition:
        topic, index = divmod(number, self.partitions)
        replicas = tuple(
            1 + (number + index) % self.brokers for index in range(self.replication_factor)
        )
        return Partition(
            number, f"topic-{topic:06d}", f"id-{topic:06d}", index, replicas, records, self.terms
        )

    @property
    def term_ns(self) -> int:
        """How long each term lasts: long enough for the partition with the most records."""
        most = max(partition.records for partition in self.all_partitions())
        return SETUP_NS + (most // self.terms + 1) * SLOT_NS + CLOSING_NS

    def controller(self, term: int) -> int:
        return 1 + term % self.brokers


@dataclass(frozen=True, slots=True)
class Partition:
    number: int
    """Among all partitions of the history."""
    topic: str
    topic_id: str
    index: int
    """Among those of its topic: Kafka's partition id."""
    replicas: tuple[int, ...]
    records: int
    """Their offsets are 0, 1, 2, ...; each is a batch of its own."""
    terms: int

    def leader(self, leader_epoch: int) -> int:
        return self.replicas[leader_epoch % len(self.replicas)]

    def first_record(self, leader_epoch: int) -> int:
        """The offset at which a leader epoch begins."""
        return self.records * leader_epoch // self.terms


@dataclass(frozen=True, slots=True)
class Stretch:
    """Neighbouring records of one partition and leader epoch; record ``first + i`` has the slot of time that begins
    at ``start_ns + i * SLOT_NS``.
    """

    partition: Partition
    leader_epoch: int
    first: int
    records: int
    start_ns: int
    seed: tuple[int, ...]
    """For a random generator of its own: what is drawn for a stretch depends on no other."""

    @property
    def leader(self) -> int:
        return self.partition.leader(self.leader_epoch)

    @property
    def followers(self) -> tuple[int, ...]:
        return tuple(broker for broker in self.partition.replicas if broker != self.leader)


def stretches(shape: Shape, partition: Partition, term: int) -> Iterator[Stretch]:
    """Yield the stretches of a partition in a term."""
    begin = partition.first_record(term)
    end = partition.first_record(term + 1)
    start_ns = START_NS + term * shape.term_ns + SETUP_NS
    for first in range(begin, end, STRETCH_RECORDS):
        yield Stretch(
            partition,
            term,
            first,
            min(STRETCH_RECORDS, end - first),
            start_ns + (first - begin) * SLOT_NS,
            (shape.seed, partition.number, term, first),
        )
