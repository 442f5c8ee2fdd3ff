"""One broker's APIs over a real ReplicaManager: every offered version says the same thing in its own words."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any
from uuid import UUID

import pytest
from kio.index import load_request_schema
from kio.schema.errors import ErrorCode

from nemesis.reference.adapters.disk import RealDisk
from nemesis.reference.kafka_config import KafkaConfig
from nemesis.reference.kafka_scheduler import KafkaScheduler
from nemesis.reference.log.log_manager import LogManager
from nemesis.reference.model import TopicPartition
from nemesis.reference.network.errors import CloseConnectionError
from nemesis.reference.protocol.codec import SIZE_BYTES, decode_response, encode_response
from nemesis.reference.protocol.schema import build, build_items, item_class
from nemesis.reference.protocol.versions import OFFERED, ApiKey
from nemesis.reference.server.alter_partition_manager import DefaultAlterPartitionManager
from nemesis.reference.server.apis.control import ControlApis
from nemesis.reference.server.apis.fetch import FetchApis
from nemesis.reference.server.apis.offsets import OffsetApis
from nemesis.reference.server.apis.produce import ProduceApis
from nemesis.reference.server.apis.records import RecordApis
from nemesis.reference.server.connection import connection_factory
from nemesis.reference.server.fetch_manager import FetchManager
from nemesis.reference.server.metadata_cache import MetadataCache
from nemesis.reference.server.replica_manager import ReplicaManager
from nemesis.reference.trace import NullTracer
from tests.reference.log.batches import NOW_MS, batch
from tests.reference.server.answers import answered
from tests.reference.server.verification import verifications

TOPIC_ID = UUID(int=7)
TP = TopicPartition("t", 0)
BROKER_ID = 1
BROKER_EPOCH = 40
SECOND = timedelta(seconds=1)


def versions(key: ApiKey, lowest: int = 0) -> list[int]:
    offered = OFFERED[key]
    return list(range(max(offered.lowest, lowest), offered.highest + 1))


class Broker:
    """Broker 1 with its APIs; told by the controller, in given versions, that it leads t-0 alone."""

    def __init__(self, directory: Path) -> None:
        config = KafkaConfig.from_properties(
            {
                "broker.id": BROKER_ID,
                "listeners": "PLAINTEXT://127.0.0.1:9092",
                "zookeeper.connect": "unused:1",
                "log.dirs": [str(directory)],
            }
        )
        log_manager = LogManager(config, RealDisk(), wall_clock=lambda: NOW_MS)
        log_manager.load_logs()
        self.cache = MetadataCache(BROKER_ID)
        replica_manager = ReplicaManager(
            config,
            tracer=NullTracer(),
            log_manager=log_manager,
            metadata_cache=self.cache,
            alter_partition_manager=DefaultAlterPartitionManager(
                config,
                metadata_cache=self.cache,
                broker_epoch=lambda: BROKER_EPOCH,
                connection=connection_factory(config)("alter-partition"),
            ),
            scheduler=KafkaScheduler(),
            broker_epoch=lambda: BROKER_EPOCH,
        )
        self.replica_manager = replica_manager
        self.produce_apis = ProduceApis(
            replica_manager.appends, verifications(replica_manager.hosted.partition), self.cache
        )
        sessions = FetchManager(1000, rng=Random(1), topic_name=self.cache.topic_name)
        self.fetch_apis = FetchApis(replica_manager.fetches, self.cache, sessions)
        self.offsets = OffsetApis(replica_manager.offsets)
        self.records = RecordApis(replica_manager.record_deletions, self.cache)
        self.fetched: list[str] = []
        """The topics whose settings were to be read."""
        self.control = ControlApis(replica_manager, self._fetch_topic_configs)

    async def _fetch_topic_configs(self, topics: Sequence[str]) -> None:
        self.fetched += topics

    async def lead(self, *, controller_epoch: int = 3, version: int = 7) -> Any:
        """Send LeaderAndIsr; returns the answer as its sender would see it."""
        schema = load_request_schema(ApiKey.LEADER_AND_ISR, version)
        state = {
            "topic_name": "t",
            "partition_index": 0,
            "controller_epoch": controller_epoch,
            "leader": BROKER_ID,
            "leader_epoch": 5,
            "isr": (BROKER_ID,),
            "partition_epoch": 2,
            "replicas": (BROKER_ID,),
            "is_new": True,
        }
        request = build(
            schema,
            controller_id=2,
            controller_epoch=controller_epoch,
            broker_epoch=BROKER_EPOCH,
            type_=0,
            live_leaders=build_items(
                schema,
                "live_leaders",
                [{"broker_id": BROKER_ID, "host_name": "127.0.0.1", "port": 9092}],
            ),
            **grouped(schema, state),
        )
        return over_the_wire(await answered(self.control.handle_leader_and_isr(request)))

    def update_metadata(self, *, version: int = 8, broker_epoch: int = BROKER_EPOCH) -> Any:
        schema = load_request_schema(ApiKey.UPDATE_METADATA, version)
        broker_class = item_class(schema, "live_brokers")
        broker: dict[str, Any] = {
            "id_": BROKER_ID,
            "v0_host": "127.0.0.1",
            "v0_port": 9092,
            "rack": "r",
        }
        if version > 0:
            end_point = {
                "port": 9092,
                "host": "127.0.0.1",
                "listener": "PLAINTEXT",
                "security_protocol": 0,
            }
            broker["endpoints"] = build_items(broker_class, "endpoints", [end_point])
        state = {
            "topic_name": "t",
            "partition_index": 0,
            "controller_epoch": 3,
            "leader": BROKER_ID,
            "leader_epoch": 5,
            "isr": (BROKER_ID,),
            "zk_version": 2,
            "replicas": (BROKER_ID,),
        }
        request = build(
            schema,
            controller_id=BROKER_ID,
            controller_epoch=3,
            broker_epoch=broker_epoch,
            live_brokers=build_items(schema, "live_brokers", [broker]),
            **grouped(schema, state),
        )
        return over_the_wire(self.control.handle_update_metadata(request))

    async def produce(
        self, records: bytes | None, *, version: int = 11, acks: int = -1, topic: str = "t"
    ) -> Any:
        schema = load_request_schema(ApiKey.PRODUCE, version)
        topic_class = item_class(schema, "topic_data")
        partitions = build_items(topic_class, "partition_data", [{"index": 0, "records": records}])
        request = build(
            schema,
            acks=acks,
            timeout=SECOND,
            topic_data=build_items(
                schema, "topic_data", [{"name": topic, "partition_data": partitions}]
            ),
        )
        answer = await answered(self.produce_apis.handle_produce(request))
        if answer is None:
            return None
        return over_the_wire(answer).responses[0].partition_responses[0]

    async def fetch(
        self,
        *,
        version: int = 17,
        topic_id: UUID = TOPIC_ID,
        session_id: int = 0,
        session_epoch: int = -1,
    ) -> Any:
        schema = load_request_schema(ApiKey.FETCH, version)
        topic_class = item_class(schema, "topics")
        partition = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 10_000}
        topic = {
            "topic": "t",
            "topic_id": topic_id,
            "partitions": build_items(topic_class, "partitions", [partition]),
        }
        request = build(
            schema,
            replica_id=-1,
            max_wait=timedelta(0),
            min_bytes=1,
            max_bytes=10_000,
            isolation_level=0,
            session_id=session_id,
            session_epoch=session_epoch,
            topics=build_items(schema, "topics", [topic]),
            forgotten_topics_data=(),
        )
        return over_the_wire(await answered(self.fetch_apis.handle_fetch(request)))


def grouped(schema: type[Any], state: dict[str, Any]) -> dict[str, Any]:
    """One partition state, by topic in the versions that group."""
    if "ungrouped_partition_states" in schema.__dataclass_fields__:
        states = build_items(schema, "ungrouped_partition_states", [state])
        return {"ungrouped_partition_states": states}
    topic_class = item_class(schema, "topic_states")
    topic = {
        "topic_name": "t",
        "topic_id": TOPIC_ID,
        "partition_states": build_items(topic_class, "partition_states", [state]),
    }
    return {"topic_states": build_items(schema, "topic_states", [topic])}


def over_the_wire(response: Any) -> Any:
    frame = encode_response(response, correlation_id=1)
    return decode_response(frame[SIZE_BYTES:], type(response))[1]


def run(tmp_path: Path, scenario: Callable[[Broker], Awaitable[None]]) -> None:
    """Run against a broker that leads t-0 and knows so."""

    async def bounded() -> None:
        broker = Broker(tmp_path)
        broker.update_metadata()
        await broker.lead()
        async with asyncio.timeout(20):
            await scenario(broker)

    asyncio.run(bounded())


@pytest.mark.parametrize("version", versions(ApiKey.LEADER_AND_ISR))
def test_leader_and_isr_in_every_version(tmp_path: Path, version: int) -> None:
    async def scenario() -> None:
        broker = Broker(tmp_path)
        broker.update_metadata()

        answer = await broker.lead(version=version)

        assert answer.error_code is ErrorCode.none
        errors = answer.topics[0].partition_errors if version >= 5 else answer.partition_errors
        assert [(e.partition_index, e.error_code) for e in errors] == [(0, ErrorCode.none)]
        partition = broker.replica_manager.hosted.partition(TP)
        assert partition.leader_epoch == 5

    asyncio.run(scenario())


def test_a_deposed_controller_is_refused(tmp_path: Path) -> None:
    async def scenario(broker: Broker) -> None:
        answer = await broker.lead(controller_epoch=2)

        assert answer.error_code is ErrorCode.stale_controller_epoch
        assert all(topic.partition_errors == () for topic in answer.topics)

    run(tmp_path, scenario)


@pytest.mark.parametrize("version", versions(ApiKey.UPDATE_METADATA))
def test_update_metadata_in_every_version(tmp_path: Path, version: int) -> None:
    async def scenario() -> None:
        broker = Broker(tmp_path)

        assert broker.update_metadata(version=version).error_code is ErrorCode.none

        info = broker.cache.partition_info(TP)
        assert info is not None
        assert (info.leader, info.leader_epoch, info.partition_epoch) == (BROKER_ID, 5, 2)
        assert [(b.id, b.end_points[0].port) for b in broker.cache.alive_brokers()] == [
            (BROKER_ID, 9092)
        ]
        assert broker.cache.topic_id("t") == (TOPIC_ID if version >= 7 else None)

    asyncio.run(scenario())


def test_an_update_for_an_earlier_life_of_the_broker_is_refused(tmp_path: Path) -> None:
    async def scenario() -> None:
        broker = Broker(tmp_path)

        answer = broker.update_metadata(broker_epoch=BROKER_EPOCH - 1)

        assert answer.error_code is ErrorCode.stale_broker_epoch
        assert broker.cache.alive_brokers() == []

    asyncio.run(scenario())


@pytest.mark.parametrize("version", versions(ApiKey.STOP_REPLICA))
def test_stop_replica_in_every_version(tmp_path: Path, version: int) -> None:
    async def scenario(broker: Broker) -> None:
        schema = load_request_schema(ApiKey.STOP_REPLICA, version)
        values: dict[str, Any] = {}
        if version == 0:
            item = {"topic_name": "t", "partition_index": 0}
            values["ungrouped_partitions"] = build_items(schema, "ungrouped_partitions", [item])
        elif version < 3:
            values["topics"] = build_items(
                schema, "topics", [{"name": "t", "partition_indexes": (0,)}]
            )
        else:
            values = grouped(
                schema, {"partition_index": 0, "leader_epoch": 5, "delete_partition": True}
            )
        request = build(
            schema,
            controller_id=2,
            controller_epoch=3,
            broker_epoch=BROKER_EPOCH,
            delete_partitions=True,
            **values,
        )

        answer = over_the_wire(broker.control.handle_stop_replica(request))

        assert answer.error_code is ErrorCode.none
        assert [
            (e.topic_name, e.partition_index, e.error_code) for e in answer.partition_errors
        ] == [("t", 0, ErrorCode.none)]
        assert TP not in {
            p.topic_partition for p in broker.replica_manager.hosted.partitions.values()
        }

    run(tmp_path, scenario)


@pytest.mark.parametrize("version", versions(ApiKey.PRODUCE, lowest=3))
def test_produce_in_every_version_of_record_format_2(tmp_path: Path, version: int) -> None:
    async def scenario(broker: Broker) -> None:
        answers = [await broker.produce(batch(2), version=version) for _ in range(2)]

        assert [(a.error_code, a.base_offset) for a in answers] == [
            (ErrorCode.none, 0),
            (ErrorCode.none, 2),
        ]

    run(tmp_path, scenario)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_produce_of_old_record_formats_is_refused(tmp_path: Path, version: int) -> None:
    async def scenario(broker: Broker) -> None:
        answer = await broker.produce(b"old", version=version)

        assert answer.error_code is ErrorCode.unsupported_for_message_format

    run(tmp_path, scenario)


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        pytest.param(b"", ErrorCode.invalid_record, id="no batch"),
        pytest.param(None, ErrorCode.invalid_record, id="null"),
        pytest.param(batch(1) * 2, ErrorCode.invalid_record, id="two batches"),
        pytest.param(batch(1)[:-1], ErrorCode.corrupt_message, id="cut short"),
        pytest.param(batch(1)[:-1] + b"?", ErrorCode.corrupt_message, id="wrong CRC"),
        pytest.param(
            batch(1, producer=(9, 0, -1)), ErrorCode.invalid_record, id="producer without sequence"
        ),
    ],
)
def test_bad_records_are_refused(
    tmp_path: Path, records: bytes | None, expected: ErrorCode
) -> None:
    async def scenario(broker: Broker) -> None:
        assert (await broker.produce(records)).error_code is expected
        assert (await broker.produce(batch(1))).base_offset == 0

    run(tmp_path, scenario)


@pytest.mark.parametrize("version", versions(ApiKey.PRODUCE, lowest=3))
def test_what_is_sent_again_is_answered_as_before_in_every_version(
    tmp_path: Path, version: int
) -> None:
    async def scenario(broker: Broker) -> None:
        records = batch(2, timestamp=NOW_MS, producer=(9, 0, 0))
        first = await broker.produce(records, version=version)
        assert (first.base_offset, first.log_append_time) == (0, None)
        assert (await broker.produce(batch(1))).base_offset == 2
        again = await broker.produce(records, version=version)
        assert (again.error_code, again.base_offset) == (ErrorCode.none, 0)
        assert again.log_append_time == datetime.fromtimestamp(NOW_MS / 1000, tz=UTC)
        assert (await broker.produce(batch(1))).base_offset == 3

    run(tmp_path, scenario)


@pytest.mark.parametrize(
    ("producer", "expected"),
    [
        ((9, 1, 1), ErrorCode.out_of_order_sequence_number),
        ((9, 2, 1), ErrorCode.out_of_order_sequence_number),
        ((9, 0, 1), ErrorCode.invalid_producer_epoch),
        ((9, 2, 0), ErrorCode.none),
        ((8, 5, 5), ErrorCode.none),
    ],
)
def test_a_producer_is_held_to_its_epoch_and_sequence_numbers(
    tmp_path: Path, producer: tuple[int, int, int], expected: ErrorCode
) -> None:
    async def scenario(broker: Broker) -> None:
        await broker.produce(batch(2, producer=(9, 1, 10)))
        assert (await broker.produce(batch(1, producer=producer))).error_code is expected

    run(tmp_path, scenario)


def test_zstd_needs_produce_version_7(tmp_path: Path) -> None:
    async def scenario(broker: Broker) -> None:
        zstd = batch(1, attributes=4)

        refused = await broker.produce(zstd, version=6)
        accepted = await broker.produce(zstd, version=7)

        assert refused.error_code is ErrorCode.unsupported_compression_type
        assert accepted.error_code is ErrorCode.none

    run(tmp_path, scenario)


def test_produce_checks_acks_and_the_topic(tmp_path: Path) -> None:
    async def scenario(broker: Broker) -> None:
        acks = await broker.produce(batch(1), acks=2)
        unknown = await broker.produce(batch(1), topic="u")

        assert acks.error_code is ErrorCode.invalid_required_acks
        assert unknown.error_code is ErrorCode.unknown_topic_or_partition

    run(tmp_path, scenario)


def test_acks_0_gets_no_answer_and_an_error_closes_the_connection(tmp_path: Path) -> None:
    async def scenario(broker: Broker) -> None:
        assert await broker.produce(batch(1), acks=0) is None
        with pytest.raises(CloseConnectionError):
            await broker.produce(batch(1), acks=0, topic="u")
        assert (await broker.produce(batch(1))).base_offset == 1

    run(tmp_path, scenario)


@pytest.mark.parametrize("version", versions(ApiKey.FETCH))
def test_fetch_in_every_version(tmp_path: Path, version: int) -> None:
    async def scenario(broker: Broker) -> None:
        await broker.produce(batch(3))

        answer = await broker.fetch(version=version)

        topic = answer.responses[0]
        assert (topic.topic_id == TOPIC_ID) if version >= 13 else (topic.topic == "t")
        (partition,) = topic.partitions
        assert (partition.partition_index, partition.error_code) == (0, ErrorCode.none)
        assert (partition.high_watermark, partition.last_stable_offset) == (3, 3)
        # The broker has written its leader epoch over the producer's −1, and offset 0 over 0.
        assert partition.records[16:] == batch(3)[16:]

    run(tmp_path, scenario)


def test_fetch_of_an_unknown_topic_id_is_an_error_of_that_topic(tmp_path: Path) -> None:
    async def scenario(broker: Broker) -> None:
        answer = await broker.fetch(topic_id=UUID(int=9))

        (topic,) = answer.responses
        assert topic.topic_id == UUID(int=9)
        assert topic.partitions[0].error_code is ErrorCode.unknown_topic_id

    run(tmp_path, scenario)


def test_a_fetch_session_that_was_never_given_is_refused(tmp_path: Path) -> None:
    async def scenario(broker: Broker) -> None:
        answer = await broker.fetch(session_id=12, session_epoch=1)

        assert answer.error_code is ErrorCode.fetch_session_id_not_found

    run(tmp_path, scenario)


@pytest.mark.parametrize("version", versions(ApiKey.LIST_OFFSETS))
def test_list_offsets_in_every_version(tmp_path: Path, version: int) -> None:
    async def scenario(broker: Broker) -> None:
        await broker.produce(batch(3))
        schema = load_request_schema(ApiKey.LIST_OFFSETS, version)
        topic_class = item_class(schema, "topics")
        latest = {"partition_index": 0, "timestamp": -1}
        topic = {"name": "t", "partitions": build_items(topic_class, "partitions", [latest])}
        request = build(
            schema,
            replica_id=-1,
            isolation_level=0,
            topics=build_items(schema, "topics", [topic]),
        )

        answer = over_the_wire(broker.offsets.handle_list_offsets(request))

        (partition,) = answer.topics[0].partitions
        assert partition.error_code is ErrorCode.none
        assert (partition.old_style_offsets == (3,)) if version == 0 else (partition.offset == 3)

    run(tmp_path, scenario)


@pytest.mark.parametrize("version", versions(ApiKey.OFFSET_FOR_LEADER_EPOCH))
def test_offset_for_leader_epoch_in_every_version(tmp_path: Path, version: int) -> None:
    async def scenario(broker: Broker) -> None:
        await broker.produce(batch(3))
        schema = load_request_schema(ApiKey.OFFSET_FOR_LEADER_EPOCH, version)
        topic_class = item_class(schema, "topics")
        asked = {"partition": 0, "leader_epoch": 5}
        topic = {"topic": "t", "partitions": build_items(topic_class, "partitions", [asked])}
        request = build(schema, replica_id=-2, topics=build_items(schema, "topics", [topic]))

        answer = over_the_wire(broker.offsets.handle_offset_for_leader_epoch(request))

        (partition,) = answer.topics[0].partitions
        assert (partition.error_code, partition.end_offset) == (ErrorCode.none, 3)

    run(tmp_path, scenario)


@pytest.mark.parametrize("version", versions(ApiKey.DELETE_RECORDS))
def test_delete_records_in_every_version(tmp_path: Path, version: int) -> None:
    async def scenario(broker: Broker) -> None:
        await broker.produce(batch(3))
        schema = load_request_schema(ApiKey.DELETE_RECORDS, version)
        topic_class = item_class(schema, "topics")
        topics = [
            {
                "name": name,
                "partitions": build_items(
                    topic_class, "partitions", [{"partition_index": 0, "offset": 2}]
                ),
            }
            for name in ("t", "unknown")
        ]
        request = build(schema, topics=build_items(schema, "topics", topics), timeout=SECOND)

        answer = over_the_wire(await answered(broker.records.handle_delete_records(request)))

        assert {
            topic.name: (partition.error_code, partition.low_watermark)
            for topic in answer.topics
            for partition in topic.partitions
        } == {
            "t": (ErrorCode.none, 2),
            "unknown": (ErrorCode.unknown_topic_or_partition, -1),
        }
        (fetched,) = (await broker.fetch()).responses[0].partitions
        assert fetched.error_code is ErrorCode.offset_out_of_range, "offset 0 is gone"

    run(tmp_path, scenario)
