"""Replicas that move from one log directory to another while they are led, followed, cut, deleted."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from nemesis.reference.adapters.disk import RealDisk
from nemesis.reference.cluster.errors import ReplicaError
from nemesis.reference.log.log import Log
from nemesis.reference.model import TopicPartition
from nemesis.reference.trace import Kind
from tests.reference.cluster.hosting import TOPIC_ID, TP, lisr
from tests.reference.log.batches import assigned, batch
from tests.reference.log.logs import read_all
from tests.reference.server.one_broker import Node, on_node

OTHER = TopicPartition("t", 1)
SLOWLY = {"replica.alter.log.dirs.io.max.bytes.per.second": 100}
"""One small batch in about a second."""
NONE = ErrorCode.none


def in_two(tmp_path: Path, scenario: Callable[[Node], Awaitable[None]], **more: Any) -> None:
    """A broker with the log directories ``one`` and ``two``."""
    directories = [str(tmp_path / name) for name in ("one", "two")]
    on_node(tmp_path, scenario, **{"log.dirs": directories}, **more)


def log_of(node: Node) -> Log:
    log = node.manager.hosted.partition(TP).log
    assert log is not None
    return log


def location_of(node: Node) -> str:
    return Path(log_of(node).log_dir).name


def other_than(node: Node) -> str:
    (other,) = set(node.config.log_dirs) - {log_of(node).log_dir}
    return other


def alter(node: Node, log_dir: str | Path, key: TopicPartition = TP) -> ErrorCode:
    return node.manager.alter_replica_log_dirs({key: str(log_dir)})[key]


def is_moving(node: Node) -> bool:
    return node.manager.hosted.partition(TP).future_log is not None


async def leading(node: Node, batches: int) -> None:
    node.lisr(lisr(isr=(1,)))
    for _ in range(batches):
        await node.produce(batch(2))


async def until_moved(node: Node) -> None:
    async with asyncio.timeout(60):
        while is_moving(node):
            await asyncio.sleep(0.05)


def kept(directory: str) -> list[str]:
    return sorted(path.name for path in Path(directory).iterdir() if path.name.startswith("t-"))


def test_a_replica_that_is_led_moves_with_all_it_has(tmp_path: Path) -> None:
    async def scenario(node: Node) -> None:
        await leading(node, 3)
        source, target = log_of(node).log_dir, other_than(node)
        assert alter(node, target) is NONE
        await until_moved(node)
        assert log_of(node).log_dir == target
        assert log_of(node).topic_id == TOPIC_ID
        assert log_of(node).latest_epoch == 0
        (result,) = await node.fetch(0)
        assert (result.high_watermark, len(result.records)) == (6, 3 * len(batch(2)))
        assert (await node.produce(batch(1)))[TP].base_offset == 6
        (moved,) = node.trace.of(Kind.LOG_DIR_CHANGED)
        assert (moved["log_dir"], moved["log_end_offset"], moved["high_watermark"]) == (
            target,
            6,
            6,
        )
        assert kept(target) == ["t-0"]
        assert all(name.endswith("-delete") for name in kept(source))

    in_two(tmp_path, scenario)


def test_what_is_appended_meanwhile_moves_too(tmp_path: Path) -> None:
    async def scenario(node: Node) -> None:
        await leading(node, 3)
        alter(node, other_than(node))
        while is_moving(node) and log_of(node).log_end_offset < 20:
            await node.produce(batch(2))
            await asyncio.sleep(0.3)
        await until_moved(node)
        end = log_of(node).log_end_offset
        assert end > 6
        assert read_all(log_of(node)) == [(offset, offset + 1) for offset in range(0, end, 2)]

    in_two(tmp_path, scenario, **SLOWLY)


def test_a_follower_that_is_cut_meanwhile_moves_what_is_left(tmp_path: Path) -> None:
    """Records of a new epoch take the place of those that were copied already."""

    async def scenario(node: Node) -> None:
        node.lisr(lisr(leader=2))
        partition = node.manager.hosted.partition(TP)
        for base in (0, 2, 4):
            partition.append_as_follower(assigned(batch(2), base, 0), 2)
        alter(node, other_than(node))
        await asyncio.sleep(1.0)
        assert partition.future_log is not None
        assert partition.future_log.log_end_offset == 4
        partition.truncate_to(2)
        assert partition.future_log.log_end_offset == 2
        node.lisr(lisr(leader=3, leader_epoch=5))
        partition.append_as_follower(assigned(batch(3), 2, 5), 5)
        await until_moved(node)
        assert read_all(log_of(node)) == [(0, 1), (2, 4)]
        assert log_of(node).leader_epoch_cache.entries == ((0, 0), (5, 2))
        assert [event["log_end_offset"] for event in node.trace.of(Kind.TRUNCATE)] == [2]

    in_two(tmp_path, scenario, **SLOWLY)


def test_a_log_that_starts_later_moves_from_there(tmp_path: Path) -> None:
    """Even if its start is within a batch."""

    async def scenario(node: Node) -> None:
        await leading(node, 3)
        node.manager.record_deletions.delete_records(
            timeout_ms=0, offsets={TP: 3}, respond=lambda results: results
        )
        alter(node, other_than(node))
        await until_moved(node)
        assert (log_of(node).log_start_offset, log_of(node).log_end_offset) == (3, 6)
        assert len((await node.fetch(3))[0].records) == 2 * len(batch(2))

    in_two(tmp_path, scenario)


def test_answers(tmp_path: Path) -> None:
    async def scenario(node: Node) -> None:
        assert alter(node, tmp_path / "three") is ErrorCode.log_dir_not_found
        assert alter(node, tmp_path / "two") is ErrorCode.replica_not_available
        await leading(node, 1)
        assert location_of(node) == "two"  # where it was wanted before there was one
        assert alter(node, tmp_path / "two") is NONE
        assert not is_moving(node)
        long = TopicPartition("t" * 220, 0)
        assert alter(node, tmp_path / "two", long) is ErrorCode.invalid_topic_exception
        node.logs.handle_log_dir_failure(str(tmp_path / "one"))
        assert alter(node, tmp_path / "one") is ErrorCode.kafka_storage_error

    in_two(tmp_path, scenario)


def test_a_move_back_is_no_move_and_a_third_directory_replaces_the_second(tmp_path: Path) -> None:
    directories = [str(tmp_path / name) for name in ("one", "two", "three")]

    async def scenario(node: Node) -> None:
        await leading(node, 3)
        first, two, three = directories
        assert log_of(node).log_dir == first
        alter(node, two)
        await asyncio.sleep(0.5)
        alter(node, two)
        assert [len(kept(path)) for path in directories] == [1, 1, 0]
        alter(node, three)
        await until_moved(node)
        assert log_of(node).log_dir == three
        assert not [name for name in kept(two) if name.endswith("-future")]

    on_node(tmp_path, scenario, **{"log.dirs": directories}, **SLOWLY)


def test_a_move_survives_restarts_and_new_epochs(tmp_path: Path) -> None:
    async def first(node: Node) -> None:
        await leading(node, 4)
        alter(node, other_than(node))
        await asyncio.sleep(1.5)
        assert is_moving(node)

    async def second(node: Node) -> None:
        assert len(node.trace.of(Kind.LOG_LOADED)) == 1
        node.lisr(lisr(isr=(1,), leader_epoch=1))
        assert is_moving(node)
        node.lisr(lisr(isr=(1,), leader_epoch=2))
        await until_moved(node)
        assert location_of(node) == "two"
        assert read_all(log_of(node)) == [(0, 1), (2, 3), (4, 5), (6, 7)]

    in_two(tmp_path, first, **SLOWLY)
    in_two(tmp_path, second, **SLOWLY)


def test_a_deleted_replica_leaves_neither_log(tmp_path: Path) -> None:
    async def scenario(node: Node) -> None:
        await leading(node, 4)
        alter(node, other_than(node))
        await asyncio.sleep(0.5)
        assert node.stop(1, delete=True)[1] == {TP: NONE}
        assert not [
            name
            for log_dir in node.config.log_dirs
            for name in kept(log_dir)
            if not name.endswith("-delete")
        ]
        await asyncio.sleep(5)
        assert node.logs.all_logs() == {}

    in_two(tmp_path, scenario, **SLOWLY)


def failing_below(monkeypatch: pytest.MonkeyPatch, directory: str) -> None:
    append = RealDisk.append

    def fail(disk: RealDisk, path: str, data: bytes) -> None:
        if path.startswith(directory):
            raise OSError(errno.EIO, "Input/output error")
        append(disk, path, data)

    monkeypatch.setattr(RealDisk, "append", fail)


def test_a_replica_whose_new_directory_fails_is_served_from_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(node: Node) -> None:
        await leading(node, 4)
        source, target = log_of(node).log_dir, other_than(node)
        alter(node, target)
        await asyncio.sleep(0.5)
        failing_below(monkeypatch, target)
        await asyncio.sleep(5)
        assert node.logs.live_log_dirs == (source,)
        assert node.log_dir_failures == 1
        assert not is_moving(node)
        assert (await node.produce(batch(1)))[TP].error is NONE
        assert len((await node.fetch(0))[0].records) > 0

    in_two(tmp_path, scenario, **SLOWLY)


@pytest.mark.parametrize("for_good", [True, False])
def test_a_replica_that_is_cut_when_its_new_directory_fails_is_served_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, for_good: bool
) -> None:
    async def scenario(node: Node) -> None:
        node.lisr(lisr(leader=2))
        partition = node.manager.hosted.partition(TP)
        for base in (0, 2, 4):
            partition.append_as_follower(assigned(batch(2), base, 0), 2)
        source, target = log_of(node).log_dir, other_than(node)
        alter(node, target)
        await asyncio.sleep(1.0)
        with monkeypatch.context() as patched:
            truncate = RealDisk.truncate

            def fail(disk: RealDisk, path: str, size: int) -> None:
                if path.startswith(target):
                    raise OSError(errno.EIO, "Input/output error")
                truncate(disk, path, size)

            patched.setattr(RealDisk, "truncate", fail)
            partition.truncate_to(2)
            await asyncio.sleep(5 if for_good else 0)
        assert [event["log_end_offset"] for event in node.trace.of(Kind.TRUNCATE)] == [2]
        node.lisr(lisr(leader=3, leader_epoch=5))
        partition.append_as_follower(assigned(batch(3), 2, 5), 5)
        await until_moved(node)
        assert node.log_dir_failures == for_good
        assert log_of(node).log_dir == (source if for_good else target)
        assert read_all(log_of(node)) == [(0, 1), (2, 4)]

    in_two(tmp_path, scenario, **SLOWLY)


def test_a_replica_whose_old_directory_fails_is_offline_until_that_is_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def first(node: Node) -> None:
        await leading(node, 4)
        source = log_of(node).log_dir
        alter(node, other_than(node))
        await asyncio.sleep(0.5)
        with monkeypatch.context() as patched:
            failing_below(patched, source)
            assert (await node.produce(batch(1)))[TP].error is ErrorCode.kafka_storage_error
        await asyncio.sleep(5)
        assert len(node.logs.live_log_dirs) == 1
        with pytest.raises(ReplicaError, match="is offline"):
            node.manager.hosted.partition(TP)

    async def second(node: Node) -> None:
        node.lisr(lisr(isr=(1,), leader_epoch=1))
        await until_moved(node)
        assert location_of(node) == "two"
        assert read_all(log_of(node)) == [(0, 1), (2, 3), (4, 5), (6, 7)]

    in_two(tmp_path, first, **SLOWLY)
    in_two(tmp_path, second, **SLOWLY)


def test_the_thread_of_a_directory_ends_when_nothing_moves_there(tmp_path: Path) -> None:
    def copiers() -> list[str]:
        names = [task.get_name() for task in asyncio.all_tasks()]
        return [name for name in names if name.startswith("replica-alter-log-dirs")]

    async def scenario(node: Node) -> None:
        await leading(node, 1)
        target = other_than(node)
        alter(node, target)
        await until_moved(node)
        assert copiers() == [f"replica-alter-log-dirs-{target}"]
        await asyncio.sleep(11)
        assert copiers() == []

    in_two(tmp_path, scenario)
