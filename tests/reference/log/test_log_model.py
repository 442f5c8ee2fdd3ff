"""Random histories of a log against a list of batches."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from nemesis.reference.adapters.disk import RealDisk
from nemesis.reference.log.log import Log
from nemesis.reference.log.log_append_info import LogAppendInfo
from nemesis.reference.log.log_config import LogConfig
from nemesis.reference.model import OffsetAndEpoch, TopicPartition
from nemesis.reference.protocol.record_batch import iter_batches
from tests.reference.log.batches import PRODUCERS, assigned, batch

MANY = 2**31

batches = st.lists(
    st.builds(batch, count=st.integers(1, 4), payload=st.binary(max_size=60)),
    min_size=1,
    max_size=3,
)


@dataclass(frozen=True)
class Stored:
    base: int
    last: int
    epoch: int
    data: bytes


class LogAgainstAList(RuleBasedStateMachine):
    """A leader's and a follower's life of one replica; segments of few batches."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = mkdtemp()
        self.stored: list[Stored] = []
        self.epoch = 0
        self.empty_epoch: int | None = None
        self.high_watermark = 0

    def teardown(self) -> None:
        shutil.rmtree(self.directory)

    @property
    def end(self) -> int:
        return self.stored[-1].last + 1 if self.stored else 0

    @initialize(segment_bytes=st.integers(300, 1000), handles=st.integers(1, 4))
    def start(self, segment_bytes: int, handles: int) -> None:
        self.config = LogConfig(segment_bytes=segment_bytes)
        self.handles = handles
        self.log = self.open()

    def open(self) -> Log:
        return Log(
            TopicPartition("t", 0),
            str(Path(self.directory) / "t-0"),
            disk=RealDisk(max_handles=self.handles),
            config=self.config,
            high_watermark=self.high_watermark,
            **PRODUCERS,
        )

    def store(self, data: bytes, info: LogAppendInfo) -> None:
        assert info.first_offset == self.end
        for header, appended in zip(iter_batches(data), info.batches, strict=True):
            whole = data[header.position : header.position + header.size_in_bytes]
            assert appended.leader_epoch == header.partition_leader_epoch
            assert (appended.crc, appended.size) == (header.crc, len(whole))
            self.stored.append(
                Stored(
                    appended.base_offset,
                    appended.last_offset,
                    header.partition_leader_epoch,
                    whole,
                )
            )
        assert info.last_offset == self.end - 1
        self.empty_epoch = None

    @rule(raised_by=st.integers(1, 3))
    def become_leader(self, raised_by: int) -> None:
        self.epoch += raised_by
        self.log.maybe_assign_epoch_start_offset(self.epoch, self.end)
        self.empty_epoch = self.epoch

    @rule(parts=batches)
    def append_as_leader(self, parts: list[bytes]) -> None:
        data = b"".join(parts)
        expected = assigned(data, self.end, self.epoch)
        self.store(expected, self.log.append_as_leader(data, self.epoch))

    @rule(parts=batches, raised_by=st.lists(st.integers(0, 2), min_size=3, max_size=3))
    def append_as_follower(self, parts: list[bytes], raised_by: list[int]) -> None:
        data, offset = b"", self.end
        for part, raised in zip(parts, raised_by, strict=False):
            self.epoch += raised
            data += assigned(part, offset, self.epoch)
            offset += next(iter_batches(part)).last_offset_delta + 1
        self.store(data, self.log.append_as_follower(data))

    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        offset = data.draw(st.integers(0, self.end + 1))
        there_were_some = offset < self.end
        assert self.log.truncate_to(offset) == there_were_some
        self.stored = [stored for stored in self.stored if stored.last < offset]
        if offset <= self.end or there_were_some:
            self.empty_epoch = None
        self.high_watermark = min(self.high_watermark, self.end)

    @rule(offset=st.integers(-1, 60))
    def update_high_watermark(self, offset: int) -> None:
        self.high_watermark = min(max(offset, 0), self.end)
        assert self.log.update_high_watermark(offset) == self.high_watermark

    @rule()
    def die_and_reopen(self) -> None:
        self.log = self.open()
        self.empty_epoch = None

    @rule()
    def close_and_reopen(self) -> None:
        self.log.close()
        self.die_and_reopen()

    @rule(data=st.data(), max_bytes=st.integers(0, 700))
    def read(self, data: st.DataObject, max_bytes: int) -> None:
        start = data.draw(st.integers(0, self.end))
        upper = data.draw(st.integers(0, self.end + 1))
        wanted = [s for s in self.stored if s.last >= start and s.last < upper]
        got = self.log.read(start, max_bytes, upper, min_one_message=True)
        count = len(list(iter_batches(got)))
        assert got == b"".join(stored.data for stored in wanted[:count])
        assert (count > 0) == bool(wanted)
        assert count <= 1 or len(got) <= max_bytes
        strict = self.log.read(start, max_bytes, upper, min_one_message=False)
        assert strict == (got if len(got) <= max_bytes else b"")

    @invariant()
    def same_records(self) -> None:
        offset, records = 0, b""
        while offset < self.end:
            data = self.log.read(offset, MANY, MANY, min_one_message=True)
            records += data
            offset = list(iter_batches(data))[-1].last_offset + 1
        assert records == b"".join(stored.data for stored in self.stored)

    @invariant()
    def same_offsets_and_epochs(self) -> None:
        assert self.log.log_end_offset == self.end
        assert self.log.high_watermark == self.high_watermark
        starts: dict[int, int] = {}
        for stored in self.stored:
            starts.setdefault(stored.epoch, stored.base)
        if self.empty_epoch is not None:
            starts[self.empty_epoch] = self.end
        assert dict(self.log.leader_epoch_cache.entries) == starts
        for epoch in range(self.epoch + 2):
            assert self.log.end_offset_for_epoch(epoch) == self.expected_end(starts, epoch)

    def expected_end(self, starts: dict[int, int], epoch: int) -> OffsetAndEpoch | None:
        if not starts or epoch > max(starts):
            return None
        floor = max((e for e in starts if e <= epoch), default=epoch)
        end = min((start for e, start in starts.items() if e > epoch), default=self.end)
        return OffsetAndEpoch(offset=end, leader_epoch=floor)


LogAgainstAList.TestCase.settings = settings(max_examples=40, stateful_step_count=25)
TestLogAgainstAList = LogAgainstAList.TestCase
