"""A batch stays what its client made of it: from the frame on the wire to the leader's file, and on to a follower's."""

from __future__ import annotations

import struct
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode
from kio.schema.fetch.v15.response import FetchableTopicResponse, FetchResponse, PartitionData
from kio.schema.produce.v9.request import PartitionProduceData, ProduceRequest, TopicProduceData

from nemesis.reference.adapters.disk import RealDisk
from nemesis.reference.log.log import Log
from nemesis.reference.log.log_config import LogConfig
from nemesis.reference.model import TopicPartition
from nemesis.reference.protocol.codec import (
    SIZE_BYTES,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)
from nemesis.reference.protocol.schema import build
from tests.reference.log.batches import PRODUCERS, batch

SET_BY_THE_LEADER = 16
"""So many bytes of a batch are base offset, length and leader epoch."""


@settings(max_examples=30)
@given(
    st.lists(
        st.tuples(st.integers(1, 9), st.integers(0, 4), st.binary(max_size=300)),
        min_size=1,
        max_size=5,
    )
)
def test_only_offset_and_leader_epoch_are_written_anew(
    tmp_path_factory: pytest.TempPathFactory, made: list[tuple[int, int, bytes]]
) -> None:
    """Whatever the records are, with whatever codec: nobody looks at them."""
    directory = tmp_path_factory.mktemp("logs")
    leader, follower = (_log(directory / name) for name in ("leader", "follower"))
    sent = [batch(count, attributes=codec, payload=data) for count, codec, data in made]
    for produced in sent:
        leader.append_as_leader(_produced(produced), 7)
        records = leader.read(follower.log_end_offset, 2**20, 2**40, min_one_message=True)
        follower.append_as_follower(_fetched(records))
    written = _file(directory / "leader")
    assert written == _file(directory / "follower")
    offset = position = 0
    for produced, (count, _, _) in zip(sent, made, strict=True):
        stored = written[position : position + len(produced)]
        assert stored[SET_BY_THE_LEADER:] == produced[SET_BY_THE_LEADER:]
        assert struct.unpack(">qii", stored[:SET_BY_THE_LEADER]) == (offset, len(produced) - 12, 7)
        offset += count
        position += len(produced)
    assert position == len(written)


def _log(directory: Path) -> Log:
    return Log(
        TopicPartition("t", 0),
        str(directory / "t-0"),
        disk=RealDisk(),
        config=LogConfig(),
        **PRODUCERS,
    )


def _file(directory: Path) -> bytes:
    return (directory / "t-0" / f"{0:020d}.log").read_bytes()


def _produced(records: bytes) -> bytes:
    """What a broker makes of a Produce request with these records."""
    data = build(PartitionProduceData, index=0, records=records)
    topic = build(TopicProduceData, name="t", partition_data=(data,))
    request: Any = build(
        ProduceRequest,
        transactional_id=None,
        acks=-1,
        timeout=timedelta(seconds=1),
        topic_data=(topic,),
    )
    frame = encode_request(request, correlation_id=1, client_id="c")
    arrived = decode_request(frame[SIZE_BYTES:], is_offered=lambda *_: True).message
    produced: bytes = arrived.topic_data[0].partition_data[0].records
    return produced


def _fetched(records: bytes) -> bytes:
    """What a follower makes of an answer with these records."""
    data = build(
        PartitionData,
        partition_index=0,
        error_code=ErrorCode.none,
        high_watermark=0,
        aborted_transactions=None,
        records=records,
    )
    topic = build(FetchableTopicResponse, topic_id=None, partitions=(data,))
    response = build(
        FetchResponse,
        throttle_time=timedelta(seconds=1),
        error_code=ErrorCode.none,
        session_id=0,
        responses=(topic,),
    )
    frame = encode_response(response, correlation_id=1)
    _, arrived = decode_response(frame[SIZE_BYTES:], FetchResponse)
    fetched: bytes = arrived.responses[0].partitions[0].records
    return fetched
