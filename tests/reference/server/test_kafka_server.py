"""A whole broker on a real ZooKeeper: a start that is disturbed, and what a controller says before its end."""

from __future__ import annotations

import asyncio
import errno
from pathlib import Path
from random import Random
from typing import Any

import pytest
from kazoo.client import KazooClient
from kio.schema.errors import ErrorCode
from kio.schema.types import BrokerId
from kio.schema.update_metadata.v8.request import UpdateMetadataRequest
from kio.static.primitive import i32, i64

from nemesis.reference.adapters.disk import RealDisk
from nemesis.reference.adapters.zookeeper import KazooZooKeeperClient
from nemesis.reference.log.errors import KafkaStorageError
from nemesis.reference.network.network_client import BrokerConnection
from nemesis.reference.ports import ZnodeStat
from nemesis.reference.server.broker_metadata_checkpoint import InconsistentClusterIdError
from nemesis.reference.server.kafka_server import KafkaServer
from nemesis.reference.trace import Kind
from nemesis.reference.zk import zk_data
from tests.reference.cluster.hosting import TP, config, log_manager
from tests.reference.controller.cluster import SESSION_TIMEOUT_MS, ListTracer, until
from tests.reference.free_port import HOST, free_port
from tests.reference.session_expiry import expire


class ExpiringClient(KazooZooKeeperClient):
    """Loses its session before the first znode is created that ``path`` names."""

    def __init__(self, address: str, path: str) -> None:
        super().__init__(address, SESSION_TIMEOUT_MS, None)
        self._address = address
        self._path = path
        self.lost = 0

    async def create(
        self, path: str, data: bytes, *, ephemeral: bool = False, sequential: bool = False
    ) -> tuple[str, ZnodeStat]:
        if path == self._path and not self.lost:
            self.lost = self.session_id
            await asyncio.to_thread(expire, self._address, self.lost)
        return await super().create(path, data, ephemeral=ephemeral, sequential=sequential)


def broker(
    directory: Path,
    zookeeper: KazooZooKeeperClient,
    *,
    disk: RealDisk | None = None,
    **properties: Any,
) -> tuple[KafkaServer, ListTracer, int]:
    tracer, port = ListTracer(), free_port()
    server = KafkaServer(
        config(directory, listeners=f"PLAINTEXT://{HOST}:{port}", **properties),
        disk=disk or RealDisk(),
        zookeeper=zookeeper,
        tracer=tracer,
        rng=Random(1),
        wall_clock=lambda: 0,
    )
    return server, tracer, port


def run(test: Any) -> None:
    asyncio.run(asyncio.wait_for(test, 30))


@pytest.mark.parametrize("path", ["/brokers/topics", zk_data.CLUSTER_ID, zk_data.broker_path(1)])
def test_a_session_that_expires_during_the_start_only_delays_it(
    tmp_path: Path, zookeeper_address: str, path: str
) -> None:
    async def test() -> None:
        zookeeper = ExpiringClient(zookeeper_address, path)
        server, tracer, _ = broker(tmp_path, zookeeper)
        try:
            await server.startup()
            await until(lambda: server.controller.is_active)
            assert zookeeper.lost not in {0, zookeeper.session_id}
            registered = tracer.of(Kind.BROKER_REGISTERED)
            assert [event["session"] for event in registered] == [zookeeper.session_id]
        finally:
            await server.shutdown()

    run(test())


def update_metadata(broker_epoch: int) -> UpdateMetadataRequest:
    return UpdateMetadataRequest(
        controller_id=BrokerId(9),
        controller_epoch=i32(77),
        broker_epoch=i64(broker_epoch),
        topic_states=(),
        live_brokers=(),
    )


class PreviousIncarnation:
    """The session of an earlier life of broker 1, which still holds its registration."""

    def __init__(self, address: str) -> None:
        self._client = KazooClient(address)
        self._client.start()
        _, stat = self._client.create(
            zk_data.broker_path(1), b"", ephemeral=True, makepath=True, include_data=True
        )
        self.broker_epoch: int = stat.czxid

    def end(self) -> None:
        self._client.stop()
        self._client.close()


async def listening(port: int) -> None:
    while True:
        try:
            _, writer = await asyncio.open_connection(HOST, port)
        except OSError:
            await asyncio.sleep(0.01)
        else:
            writer.close()
            return


def test_what_was_said_to_the_previous_life_waits_for_the_registration_and_is_refused(
    tmp_path: Path, zookeeper_address: str
) -> None:
    async def test() -> None:
        previous = await asyncio.to_thread(PreviousIncarnation, zookeeper_address)
        server, tracer, port = broker(
            tmp_path, KazooZooKeeperClient(zookeeper_address, SESSION_TIMEOUT_MS, None)
        )
        starting = asyncio.create_task(server.startup())
        connection = BrokerConnection(client_id="c", source_address=None, max_response_bytes=9999)
        try:
            await listening(port)
            late = asyncio.create_task(
                connection.send(HOST, port, update_metadata(previous.broker_epoch), timeout_s=20)
            )
            await asyncio.wait([late], timeout=0.2)
            assert not late.done()
            assert tracer.of(Kind.CONTROL_REQUEST_HANDLED) == []
            await asyncio.to_thread(previous.end)
            await starting
            assert (await late).error_code is ErrorCode.stale_broker_epoch
            # Its own controller's requests, which it sent to itself, are heard.
            await until(lambda: server.metadata_cache.controller_id == 1)
            current = update_metadata(server.controller.broker_epoch)
            answer = await connection.send(HOST, port, current, timeout_s=20)
            assert answer.error_code is ErrorCode.none
        finally:
            await connection.close()
            await server.shutdown()

    run(test())


def test_a_broker_that_is_not_registered_yet_can_be_stopped(
    tmp_path: Path, zookeeper_address: str
) -> None:
    async def test() -> None:
        previous = await asyncio.to_thread(PreviousIncarnation, zookeeper_address)
        server, tracer, port = broker(
            tmp_path, KazooZooKeeperClient(zookeeper_address, SESSION_TIMEOUT_MS, None)
        )
        starting = asyncio.create_task(server.startup())
        connection = BrokerConnection(client_id="c", source_address=None, max_response_bytes=9999)
        await listening(port)
        late = asyncio.create_task(
            connection.send(HOST, port, update_metadata(previous.broker_epoch), timeout_s=20)
        )
        await asyncio.wait([late], timeout=0.2)
        starting.cancel()
        async with asyncio.timeout(5):
            await asyncio.gather(starting, return_exceptions=True)
            await server.shutdown()
            await asyncio.gather(late, return_exceptions=True)
        assert late.exception() is not None
        assert tracer.of(Kind.CONTROL_REQUEST_HANDLED) == []
        await connection.close()
        await asyncio.to_thread(previous.end)

    run(test())


def test_the_controller_is_told_of_one_failed_log_directory_of_several(
    tmp_path: Path, zookeeper_address: str
) -> None:
    directories = [str(tmp_path / name) for name in ("a", "b")]
    for directory in directories:
        Path(directory).mkdir()

    async def test() -> None:
        server, tracer, _ = broker(
            tmp_path,
            KazooZooKeeperClient(zookeeper_address, SESSION_TIMEOUT_MS, None),
            log_dirs=directories,
        )
        try:
            await server.startup()
            error = KafkaStorageError("the medium failed", failed_log_dir=directories[0])
            server.replica_manager.storage_failures.note(error)

            def processed() -> list[str]:
                """What the controller has read and taken away."""
                attempts = tracer.of(Kind.ZNODE_ATTEMPT)
                return [e["path"] for e in attempts if e["path"].startswith(zk_data.LOG_DIR_EVENTS)]

            await until(lambda: len(processed()) == 1)
            assert server.log_manager.live_log_dirs == (directories[1],)
        finally:
            await server.shutdown()

    run(test())


def test_a_broker_alone_is_let_go_by_itself(tmp_path: Path, zookeeper_address: str) -> None:
    async def test() -> None:
        zookeeper = KazooZooKeeperClient(zookeeper_address, SESSION_TIMEOUT_MS, None)
        server, _, _ = broker(tmp_path, zookeeper)
        try:
            await server.controlled_shutdown()  # Not started: there is nothing to be let go from.
            await server.startup()
            await until(lambda: server.metadata_cache.controller_id == 1)
            await server.controlled_shutdown()
            assert server.controller.context.shutting_down_broker_ids == {1}
        finally:
            await server.shutdown()

    run(test())


def test_a_broker_with_the_logs_of_another_cluster_does_not_start(
    tmp_path: Path, zookeeper_address: str
) -> None:
    (tmp_path / "meta.properties").write_text("version=0\nbroker.id=1\ncluster.id=another\n")

    async def test() -> None:
        zookeeper = KazooZooKeeperClient(zookeeper_address, SESSION_TIMEOUT_MS, None)
        server, tracer, _ = broker(tmp_path, zookeeper)
        try:
            with pytest.raises(InconsistentClusterIdError, match=r"says cluster\.id another"):
                await server.startup()
            assert tracer.of(Kind.BROKER_REGISTERED) == []
        finally:
            await server.shutdown()

    run(test())


class NoSpaceFor(RealDisk):
    """Cannot write the files of one directory anew."""

    def __init__(self, directory: str) -> None:
        super().__init__()
        self._directory = directory

    def replace(self, path: str, data: bytes) -> None:
        if path.startswith(self._directory):
            raise OSError(errno.ENOSPC, "No space left on device")
        super().replace(path, data)


def test_a_log_directory_that_cannot_be_marked_as_ones_own_goes_offline(
    tmp_path: Path, zookeeper_address: str
) -> None:
    good, full = str(tmp_path / "good"), str(tmp_path / "full")

    async def test() -> None:
        zookeeper = KazooZooKeeperClient(zookeeper_address, SESSION_TIMEOUT_MS, None)
        server, _, _ = broker(tmp_path, zookeeper, disk=NoSpaceFor(full), log_dirs=[good, full])
        try:
            await server.startup()
            await until(lambda: server.log_manager.live_log_dirs == (good,))
        finally:
            await server.shutdown()

    run(test())


def test_logs_are_loaded_under_the_settings_of_their_topics(
    tmp_path: Path, zookeeper_address: str
) -> None:
    """No controller has sent anything yet; by the settings of the broker the records would be deleted."""
    logs = log_manager(config(tmp_path))
    logs.get_or_create_log(TP, None, is_new=True)
    logs.close()

    async def test() -> None:
        client = KazooClient(zookeeper_address)
        await asyncio.to_thread(client.start)

        def prepare() -> None:
            client.create(
                "/controller", b'{"version":1,"brokerid":9,"timestamp":"0"}', ephemeral=True
            )
            client.create(
                "/brokers/topics/t", b'{"version":2,"partitions":{"0":[1]}}', makepath=True
            )
            settings = b'{"version":1,"config":{"cleanup.policy":"compact"}}'
            client.create("/config/topics/t", settings, makepath=True)

        await asyncio.to_thread(prepare)
        zookeeper = KazooZooKeeperClient(zookeeper_address, SESSION_TIMEOUT_MS, None)
        server, _, _ = broker(tmp_path, zookeeper)
        try:
            await server.startup()
            log = server.log_manager.get_log(TP)
            assert log is not None
            assert log.config.cleanup_policy == ("compact",)
        finally:
            await server.shutdown()
            await asyncio.to_thread(client.stop)
            client.close()

    run(test())


def test_quotas_of_clients_are_read_at_the_start_and_followed(
    tmp_path: Path, zookeeper_address: str
) -> None:
    async def test() -> None:
        client = KazooClient(zookeeper_address)
        await asyncio.to_thread(client.start)

        def set_quota(name: str, rate: str) -> None:
            path = f"/config/clients/{name}"
            client.ensure_path(path)
            client.set(path, b'{"version":1,"config":{"producer_byte_rate":"%s"}}' % rate.encode())

        def announce(name: str) -> None:
            client.create(
                "/config/changes/config_change_",
                b'{"version":2,"entity_path":"clients/%s"}' % name.encode(),
                sequence=True,
            )

        await asyncio.to_thread(set_quota, "one%2A", "1000")
        zookeeper = KazooZooKeeperClient(zookeeper_address, SESSION_TIMEOUT_MS, None)
        server, _, _ = broker(tmp_path, zookeeper)
        produce = server.quotas.produce
        try:
            await server.startup()
            assert produce.record_and_get_throttle_time_s("one*", 100_000, 0.0) > 0
            assert produce.record_and_get_throttle_time_s("two", 100_000, 0.0) == 0
            await asyncio.to_thread(set_quota, "<default>", "1000")
            await asyncio.to_thread(announce, "<default>")
            await until(lambda: produce.record_and_get_throttle_time_s("two", 100_000, 0.0) > 0)
        finally:
            await server.shutdown()
            await asyncio.to_thread(client.stop)
            client.close()

    run(test())
