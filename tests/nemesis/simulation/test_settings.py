"""Settings change while a simulated cluster runs: brokers follow, late ones catch up, the controller elects at once."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from kio.index import load_request_schema
from kio.schema.errors import ErrorCode
from kio.static.primitive import i8

from nemesis.history.events import Kind
from nemesis.interfaces.links import Link
from nemesis.reference.protocol.schema import build, build_items, item_class
from nemesis.reference.server.zk_config_manager import CHANGE_EXPIRATION_MS
from nemesis.workloads.kafka.errors import KafkaError
from tests.nemesis.simulation.administered_cluster import Cluster, simulate

TOPIC, BROKER = 2, 4
MIN_ISR, UNCLEAN = "min.insync.replicas", "unclean.leader.election.enable"
LAG_S = 3.0
"""The ``replica.lag.time.max.ms`` of these clusters."""


async def alter(cluster: Cluster, kind: int, name: str, settings: dict[str, str | None]) -> None:
    """Set or (None) delete settings by whichever broker answers."""
    schema = load_request_schema(44, 1)
    items = [
        {"name": key, "value": value, "config_operation": i8(1 if value is None else 0)}
        for key, value in settings.items()
    ]
    configs = build_items(item_class(schema, "resources"), "configs", items)
    resource = {"resource_type": i8(kind), "resource_name": name, "configs": configs}
    resources = build_items(schema, "resources", [resource])
    request = build(schema, resources=resources, validate_only=False)

    async def altered() -> bool:
        answer = await cluster.ask(request)
        return answer is not None and answer.responses[0].error_code is ErrorCode.none

    await cluster.until(altered)


async def is_taken(cluster: Cluster) -> bool:
    """Whether the leader of t-0 takes a produce under acks=all, or finds too few in sync."""
    answers: list[str] = []

    async def answered() -> bool:
        await cluster.client.refresh_metadata()
        try:
            await cluster.client.send("t", 0, [(None, b"v")], acks=-1, timeout_s=2.0)
        except KafkaError as error:
            answers.append(error.name)
            return error.name == "NOT_ENOUGH_REPLICAS"
        answers.append("NONE")
        return True

    await cluster.until(answered)
    return answers[-1] == "NONE"


async def state(cluster: Cluster) -> dict[str, Any]:
    znode = await cluster.zookeeper.get("/brokers/topics/t/partitions/0/state")
    assert znode is not None
    read: dict[str, Any] = json.loads(znode[0])
    return read


def elections(cluster: Cluster) -> list[str | None]:
    """How the leaders of t-0 were elected."""
    events = (entry.event for entry in cluster.record.entries)
    return [e.strategy for e in events if e.kind == Kind.LEADER_ELECTED and e.partition == 0]


async def leave_alone(cluster: Cluster) -> tuple[str, list[str]]:
    """Let the leader of t-0 be alone in its ISR; return it, and the others, which are dead."""
    await cluster.send("t", 0, b"of all")
    leader = f"broker-{(await state(cluster))['leader']}"
    others = [broker for broker in cluster.runtime.cluster.brokers if broker != leader]
    for broker in others:
        await cluster.runtime.processes.kill(broker)

    async def is_alone() -> bool:
        return len((await state(cluster))["isr"]) == 1

    await cluster.until(is_alone)
    return leader, others


async def settle(cluster: Cluster) -> None:
    """Let the sessions of earlier lives end, then wait until all replicas are in sync."""
    await asyncio.sleep(5.0)
    await cluster.until(cluster.is_settled)


def test_brokers_follow_the_settings_of_a_topic() -> None:
    async def test(cluster: Cluster) -> None:
        leader, others = await leave_alone(cluster)
        await alter(cluster, TOPIC, "t", {MIN_ISR: "2"})
        await asyncio.sleep(0.5)
        assert not await is_taken(cluster)
        await alter(cluster, TOPIC, "t", {MIN_ISR: None})
        await asyncio.sleep(0.5)
        assert await is_taken(cluster)
        assert leader not in others

    simulate(test)


def test_a_setting_of_all_brokers_counts_where_a_topic_has_none() -> None:
    async def test(cluster: Cluster) -> None:
        await leave_alone(cluster)
        await alter(cluster, BROKER, "", {MIN_ISR: "2"})
        await asyncio.sleep(0.5)
        assert not await is_taken(cluster)
        await alter(cluster, TOPIC, "t", {MIN_ISR: "1"})
        await asyncio.sleep(0.5)
        assert await is_taken(cluster)

    simulate(test)


@pytest.mark.parametrize("kind", [TOPIC, BROKER])
def test_a_broker_that_was_away_has_the_settings_when_it_leads(kind: int) -> None:
    async def test(cluster: Cluster) -> None:
        leader, others = await leave_alone(cluster)
        for broker in others:
            await cluster.runtime.processes.restart(broker)

        await settle(cluster)
        for broker in others:
            await cluster.runtime.processes.kill(broker)
        await alter(cluster, kind, "t" if kind == TOPIC else "", {MIN_ISR: "2"})
        for broker in others:
            await cluster.runtime.processes.restart(broker)
        await settle(cluster)
        await cluster.runtime.processes.kill(leader)
        await cluster.runtime.processes.kill(others[0])
        await asyncio.sleep(2 * LAG_S)
        assert not await is_taken(cluster)

    simulate(test)


def test_a_broker_that_was_cut_off_from_zookeeper_catches_up() -> None:
    async def test(cluster: Cluster) -> None:
        leader, _ = await leave_alone(cluster)
        for broker in cluster.runtime.cluster.brokers:
            if broker != leader:
                await cluster.runtime.processes.restart(broker)
        await cluster.until(cluster.is_settled)
        victim = f"broker-{(await state(cluster))['leader']}"
        cut = frozenset(
            link
            for member in cluster.runtime.cluster.zookeepers
            for link in (Link(victim, member), Link(member, victim))
        )
        await cluster.runtime.network.cut(cut)
        await asyncio.sleep(4.0)  # longer than its session
        await alter(cluster, TOPIC, "t", {MIN_ISR: "2"})
        await cluster.runtime.network.restore(cut)
        await cluster.until(cluster.is_settled)
        await leave_alone(cluster)
        assert not await is_taken(cluster)

    simulate(test)


@pytest.mark.parametrize("kind", [TOPIC, BROKER])
@pytest.mark.parametrize("kill_after_ms", [None, 0, 5, 10, 20])
def test_where_unclean_elections_become_allowed_one_is_held_at_once(
    kind: int, kill_after_ms: int | None
) -> None:
    async def test(cluster: Cluster) -> None:
        leader, others = await leave_alone(cluster)
        await cluster.runtime.processes.kill(leader)
        for broker in others:
            await cluster.runtime.processes.restart(broker)

        async def is_offline() -> bool:
            return bool((await state(cluster))["leader"] == -1)

        async def is_led() -> bool:
            return not await is_offline()

        await cluster.until(is_offline)
        await asyncio.sleep(3.0)
        assert await is_offline()
        altering = asyncio.create_task(
            alter(cluster, kind, "t" if kind == TOPIC else "", {UNCLEAN: "true"})
        )
        if kill_after_ms is not None:
            await asyncio.sleep(kill_after_ms / 1000)
            controller = await cluster.controller()
            await cluster.runtime.processes.kill(controller)
            await asyncio.sleep(3.0)
            await cluster.runtime.processes.restart(controller)
        await altering
        await cluster.until(is_led)
        assert "unclean" in elections(cluster)
        await cluster.runtime.processes.restart(leader)
        await cluster.until(cluster.is_settled)

    simulate(test)


def test_notifications_are_purged_when_they_are_old() -> None:
    async def test(cluster: Cluster) -> None:
        await alter(cluster, TOPIC, "t", {"flush.messages": "7"})
        await asyncio.sleep(CHANGE_EXPIRATION_MS / 1000 + 1)
        assert len(await cluster.zookeeper.children("/config/changes")) == 1
        await alter(cluster, TOPIC, "t", {"flush.messages": "8"})

        async def is_purged() -> bool:
            names = await cluster.zookeeper.children("/config/changes")
            return names == ["config_change_0000000001"]

        await cluster.until(is_purged)

    simulate(test)
