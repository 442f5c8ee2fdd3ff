"""InitProducerId without a transactional id: every producer gets a new id."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from kio.index import load_request_schema
from kio.schema.errors import ErrorCode

from nemesis.reference.protocol.schema import build
from nemesis.reference.protocol.versions import OFFERED, ApiKey
from nemesis.reference.server.apis.conversion import NO_THROTTLE
from nemesis.reference.server.apis.producers import ProducerApis
from nemesis.reference.server.zk_producer_id_manager import ZkProducerIdManager
from nemesis.reference.zk.errors import ClientClosedError
from nemesis.reference.zk.producer_id_block import (
    PRODUCER_ID_BLOCK_SIZE,
    ProducerIdsBlock,
    ProducerIdsExhaustedError,
)


class Blocks:
    """What ZooKeeper gives: the blocks from number ``taken`` on, or an error."""

    def __init__(self, taken: int = 0, error: Exception | None = None) -> None:
        self.taken = taken
        self.error = error

    async def get_new_producer_id_block(self, broker_id: int) -> ProducerIdsBlock:
        if self.error is not None:
            raise self.error
        first = self.taken * PRODUCER_ID_BLOCK_SIZE
        self.taken += 1
        return ProducerIdsBlock(broker_id, first, first + PRODUCER_ID_BLOCK_SIZE - 1)


def asking(blocks: Blocks) -> ProducerApis:
    ids = ZkProducerIdManager(1, blocks)  # type: ignore[arg-type]
    return ProducerApis(ids, None)  # type: ignore[arg-type]


def request(version: int = 5, **values: Any) -> Any:
    schema = load_request_schema(ApiKey.INIT_PRODUCER_ID, version)
    return build(schema, **{"transactional_id": None, "transaction_timeout": NO_THROTTLE} | values)


def answer(apis: ProducerApis, message: Any) -> tuple[ErrorCode, int, int]:
    response = asyncio.run(apis.handle_init_producer_id(message))
    return response.error_code, response.producer_id, response.producer_epoch


VERSIONS = range(
    OFFERED[ApiKey.INIT_PRODUCER_ID].lowest, OFFERED[ApiKey.INIT_PRODUCER_ID].highest + 1
)


@pytest.mark.parametrize("version", VERSIONS)
def test_an_id_in_every_version(version: int) -> None:
    assert answer(asking(Blocks(taken=4)), request(version)) == (ErrorCode.none, 4000, 0)


def test_each_gets_another_one_and_after_the_last_of_a_block_comes_the_next_block() -> None:
    blocks = Blocks()
    apis = asking(blocks)
    ids = [answer(apis, request())[1] for _ in range(PRODUCER_ID_BLOCK_SIZE + 2)]
    assert ids == list(range(PRODUCER_ID_BLOCK_SIZE + 2))
    assert blocks.taken == 2


def test_who_has_an_id_already_gets_a_new_one() -> None:
    assert answer(asking(Blocks()), request(producer_id=7, producer_epoch=3)) == (
        ErrorCode.none,
        0,
        0,
    )


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"producer_id": 7}, ErrorCode.invalid_request),
        ({"producer_epoch": 0}, ErrorCode.invalid_request),
    ],
)
def test_what_is_refused(values: dict[str, Any], expected: ErrorCode) -> None:
    blocks = Blocks()
    assert answer(asking(blocks), request(**values)) == (expected, -1, -1)
    assert blocks.taken == 0


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ClientClosedError("closed"), ErrorCode.coordinator_load_in_progress),
        (ProducerIdsExhaustedError("none left"), ErrorCode.unknown_server_error),
    ],
)
def test_without_a_block_there_is_no_id(error: Exception, expected: ErrorCode) -> None:
    assert answer(asking(Blocks(error=error)), request()) == (expected, -1, -1)
