"""Requests of `transaction.version` 2, which the reference does not have: their bytes, and who is asked for what."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from nemesis.workloads.kafka import codec
from nemesis.workloads.kafka.client import KafkaClient
from nemesis.workloads.kafka.group_offset_requests import Committed
from nemesis.workloads.kafka.group_requests import Membership
from nemesis.workloads.kafka.implicit_transactions import (
    EndTxnResponse,
    ImplicitProduceRequest,
    transaction_version,
)
from nemesis.workloads.kafka.produces import produce_request
from nemesis.workloads.kafka.transaction_requests import (
    ProducerIdentity,
    commit_offsets_request,
    end_request,
)
from tests.workloads.transaction_bench import REQUEST_S, Bench, on_bench

PRODUCER = ProducerIdentity("writes-0", 7, 3)
MEMBER = Membership("group", "member-a", 4, "instance-a")
BATCHES = {("t", 0): b"batch"}
COMMITS: Mapping[tuple[str, int], Committed] = {("t", 0): Committed(5, -1, "1")}


def produced(*, is_implicit: bool) -> Any:
    kinds = {"kind": ImplicitProduceRequest} if is_implicit else {}
    return produce_request(BATCHES, acks=-1, timeout_s=1.0, transactional_id="writes-0", **kinds)


def committed(*, is_implicit: bool) -> Any:
    return commit_offsets_request(PRODUCER, MEMBER, COMMITS, is_implicit=is_implicit)


def ended(*, is_implicit: bool) -> Any:
    return end_request(PRODUCER, is_commit=True, is_implicit=is_implicit)


def frame(request: Any) -> bytes:
    return codec.encode_request(request, correlation_id=1, client_id="c")


@pytest.mark.parametrize(
    ("make", "key", "older", "newer"),
    [(produced, 0, 9, 12), (committed, 28, 3, 5), (ended, 26, 3, 5)],
)
def test_the_later_version_has_the_same_fields(make: Any, key: int, older: int, newer: int) -> None:
    explicit, implicit = frame(make(is_implicit=False)), frame(make(is_implicit=True))
    assert struct.unpack_from(">hh", explicit, 4) == (key, older)
    assert struct.unpack_from(">hh", implicit, 4) == (key, newer)
    assert explicit[8:] == implicit[8:]


def test_the_answer_to_an_end_has_the_next_epoch() -> None:
    header, body = struct.pack(">ib", 1, 0), struct.pack(">ihqhb", 0, 0, 7, 4, 0)
    _, response = codec.decode_response(header + body, EndTxnResponse)
    assert (response.error_code, response.producer_id, response.producer_epoch) == (
        ErrorCode.none,
        7,
        4,
    )


def test_the_reference_does_not_have_the_feature() -> None:
    async def test(bench: Bench) -> None:
        client: KafkaClient = bench.client()
        assert await transaction_version(client, REQUEST_S) == 0

    on_bench(test)
