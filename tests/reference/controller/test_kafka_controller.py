"""The controller on a real ZooKeeper: elections, fencing, failover, session expiry, brokers and topics."""

from __future__ import annotations

import asyncio

import pytest
from kio.schema.errors import ErrorCode

from nemesis.reference.controller.alter_partition import AlterPartitionItem
from nemesis.reference.model import LeaderRecoveryState, TopicPartition
from nemesis.reference.network.errors import NetworkError
from nemesis.reference.ports import Create, Delete, SetData, ZnodeStat
from nemesis.reference.trace import Kind
from nemesis.reference.zk import config_znodes, zk_data
from tests.reference.controller.cluster import (
    TOPIC_ID,
    Node,
    create_topic,
    nodes,
    ok,
    run,
    until,
)
from tests.reference.session_expiry import drop_connection, expire


def test_the_first_broker_is_elected_with_epoch_1_in_one_multi(zookeeper_address: str) -> None:
    async def test() -> None:
        async with nodes(zookeeper_address, 1, 2) as (first, second):
            assert first.controller.is_active
            assert not second.controller.is_active
            assert second.controller.active_controller_id == 1
            data, controller = await first.zookeeper.get(zk_data.CONTROLLER)
            epoch, epoch_stat = await first.zookeeper.get(zk_data.CONTROLLER_EPOCH)
            assert (zk_data.decode_controller(data), epoch) == (1, b"1")
            assert controller.czxid == epoch_stat.mzxid
            assert first.tracer.of(Kind.CONTROLLER_ELECTED) == [
                {
                    "controller_epoch": 1,
                    "zk_version": 1,
                    "session": first.zookeeper.session_id,
                    "zxid": epoch_stat.mzxid,
                }
            ]
            assert first.tracer.of(Kind.CONTROLLER_FAILOVER) == [
                {"controller_epoch": 1, "live": [1]}
            ]
            assert second.tracer.of(Kind.CONTROLLER_ELECTED) == []

    run(test())


@pytest.mark.parametrize("foreign", [b"", b"no json", b"[]", b'{"brokerid": 2}'])
def test_the_office_stays_with_its_session_whatever_somebody_writes_there(
    zookeeper_address: str, foreign: bytes
) -> None:
    async def test() -> None:
        async with nodes(zookeeper_address, 1, 2) as (first, second):
            await first.zookeeper.set_data(zk_data.CONTROLLER, foreign, -1)
            await create_topic(first, "t", (1, 2))
            await until(lambda: len(first.elected("t", 0)) == 1)
            assert first.tracer.of(Kind.CONTROLLER_RESIGNED) == []
            await first.zookeeper.delete(zk_data.CONTROLLER)
            await until(lambda: len(first.tracer.of(Kind.CONTROLLER_RESIGNED)) == 1)
            await until(lambda: first.controller.is_active or second.controller.is_active)

    run(test())


def test_a_new_topic_gets_leaders_and_everybody_is_told(zookeeper_address: str) -> None:
    async def test() -> None:
        async with nodes(zookeeper_address, 1, 2, 3) as (first, *_):
            await create_topic(first, "t", (2, 3, 1), (3, 1, 2))
            await until(lambda: len(first.wire.to(1, "LeaderAndIsr")) == 1)
            for partition, replicas in enumerate(((2, 3, 1), (3, 1, 2))):
                state = await first.state("t", partition)
                assert state.controller_epoch == 1
                assert state.leader_and_isr.leader == replicas[0]
                assert state.leader_and_isr.isr == replicas
                assert (state.leader_and_isr.leader_epoch, state.leader_and_isr.partition_epoch) == (0, 0)  # fmt: skip
                assert first.elected("t", partition) == [("new", replicas[0], 0, list(replicas))]
            (request,) = first.wire.to(1, "LeaderAndIsr")
            assert request.controller_epoch == 1
            assert request.broker_epoch == first.controller.broker_epoch
            assert [t.topic_id for t in request.topic_states] == [TOPIC_ID]
            assert [p.is_new for t in request.topic_states for p in t.partition_states] == [
                True,
                True,
            ]
            assert {leader.broker_id for leader in request.live_leaders} == {2, 3}
            transitions = [e for e in first.tracer.of(Kind.TRANSITION) if "replica" not in e]
            states = [(e["from_state"], e["to_state"]) for e in transitions]
            assert states == [("NonExistent", "New")] * 2 + [("New", "Online")] * 2

    run(test())


def test_metadata_goes_to_all_brokers_before_any_state(zookeeper_address: str) -> None:
    async def test() -> None:
        async with nodes(zookeeper_address, 1, 2) as (first, second):
            await create_topic(first, "t", (1, 2))
            await until(lambda: len(first.wire.to(2, "LeaderAndIsr")) == 1)
            await first.stop()
            await until(lambda: len(second.wire.to(2, "LeaderAndIsr")) >= 1)
            first_sent = second.wire.sent[0][1]
            assert type(first_sent).__name__ == "UpdateMetadataRequest"
            assert first_sent.topic_states == ()
            assert [b.id_ for b in first_sent.live_brokers] in ([2], [1, 2])

    run(test())


def test_failover_elects_for_the_partitions_of_the_dead_controller(zookeeper_address: str) -> None:
    async def test() -> None:
        async with nodes(zookeeper_address, 1, 2, 3) as (first, second, third):
            await create_topic(first, "t", (1, 2, 3))
            await until(lambda: len(first.wire.to(3, "LeaderAndIsr")) == 1)
            await first.stop()
            await until(lambda: second.controller.is_active or third.controller.is_active)
            heir = second if second.controller.is_active else third
            # First it takes the dead leader out, then it elects another.
            await until(lambda: [leader for _, leader, _, _ in heir.elected("t", 0)][-1:] == [2])
            await until(lambda: heir.controller.context.live_broker_ids == [2, 3])
            state = await heir.state("t", 0)
            assert state.controller_epoch == 2
            assert state.leader_and_isr.leader == 2
            assert state.leader_and_isr.isr == (2, 3)
            epochs = [epoch for _, _, epoch, _ in heir.elected("t", 0)]
            assert epochs == list(range(1, len(epochs) + 1))
            assert all(request.controller_epoch == 2 for request in heir.wire.to(3, "LeaderAndIsr"))

    run(test())


def test_a_deposed_controller_cannot_write_and_resigns(zookeeper_address: str) -> None:
    async def test() -> None:
        async with nodes(zookeeper_address, 1, 2) as (first, second):
            await create_topic(first, "t", (1, 2))
            await until(lambda: len(first.wire.to(2, "LeaderAndIsr")) == 1)
            before = await first.state("t", 0)
            # Somebody else takes the next epoch; the first controller has not noticed anything.
            await second.zookeeper.multi([SetData(zk_data.CONTROLLER_EPOCH, b"2", 1)])
            topic_partition = TopicPartition("t", 0)
            proposal = AlterPartitionItem(
                None, TOPIC_ID, 0, 0, ((1, -1),), LeaderRecoveryState.RECOVERED, 0
            )
            error, answers = await first.controller.alter_partitions(
                1, first.controller.broker_epoch, [proposal]
            )
            assert (error, answers) == (ErrorCode.not_controller, [])
            assert await first.state("t", 0) == before
            assert [e["controller_epoch"] for e in first.tracer.of(Kind.CONTROLLER_RESIGNED)] == [1]
            refused = first.tracer.of(Kind.ZNODE_OUTCOME)[-1]
            assert refused["path"] == zk_data.state_path(topic_partition)
            assert refused["error"] == "BADVERSION"

    run(test())


def test_an_expired_controller_resigns_first_and_registers_anew(zookeeper_address: str) -> None:
    async def test() -> None:
        async with nodes(zookeeper_address, 1, 2) as (first, second):
            old_session, old_epoch = first.zookeeper.session_id, first.controller.broker_epoch
            await asyncio.to_thread(expire, zookeeper_address, old_session)
            await until(lambda: first.controller.broker_epoch != old_epoch)
            await until(lambda: first.controller.is_active or second.controller.is_active)
            kinds = [
                (kind.value, columns.get("session_state") or columns.get("reason", ""))
                for kind, columns in first.tracer.events
                if kind in (Kind.SESSION_STATE, Kind.CONTROLLER_RESIGNED, Kind.BROKER_REGISTERED)
            ]
            assert kinds == [
                ("session-state", "connected"),
                ("broker-registered", ""),
                ("session-state", "suspended"),
                ("session-state", "expired"),
                ("controller-resigned", "session expired"),
                ("session-state", "connected"),
                ("broker-registered", ""),
            ]
            controllers = [n for n in (first, second) if n.controller.is_active]
            assert [n.controller.context.epoch for n in controllers] == [2]
            heir = controllers[0]
            await until(
                lambda: (
                    heir.controller.context.live_broker_epochs
                    == {1: first.controller.broker_epoch, 2: second.controller.broker_epoch}
                )
            )

    run(test())


def test_a_restarted_broker_waits_for_the_session_of_its_previous_life(
    zookeeper_address: str,
) -> None:
    async def test() -> None:
        async with nodes(zookeeper_address, 1) as (first,):
            again = Node(zookeeper_address, 1)
            starting = asyncio.create_task(again.start())
            await until(lambda: again.zookeeper.session_id != 0)
            await asyncio.sleep(0.1)
            assert not starting.done()
            await asyncio.to_thread(expire, zookeeper_address, first.zookeeper.session_id)
            try:
                await first.controller.shutdown()
                await asyncio.wait_for(starting, 20)
                await until(lambda: again.controller.is_active)
                assert again.controller.broker_epoch > first.controller.broker_epoch
                assert again.controller.context.epoch > 1
            finally:
                await again.stop()

    run(test())


def test_a_controller_that_finds_its_own_live_znode_runs_the_failover(
    zookeeper_address: str,
) -> None:
    async def test() -> None:
        node = Node(zookeeper_address, 1)
        await node.zookeeper.start()
        try:
            await node.zookeeper.create(zk_data.CONTROLLER_EPOCH, b"5")
            await node.zookeeper.create(
                zk_data.CONTROLLER, zk_data.encode_controller(1, 0), ephemeral=True
            )
            await node.controller.startup()
            assert node.controller.is_active
            assert node.controller.context.epoch == 5
            assert node.tracer.of(Kind.CONTROLLER_FAILOVER) == [
                {"controller_epoch": 5, "live": [1]}
            ]
        finally:
            await node.stop()

    run(test())


def test_an_office_that_is_lost_meanwhile_is_not_resumed_under_anothers_epoch(
    zookeeper_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test() -> None:
        node, rival = Node(zookeeper_address, 1), Node(zookeeper_address, 2)
        await node.zookeeper.start()
        await rival.zookeeper.start()
        election = node.zk_client.election
        read = election.get_controller_epoch

        async def read_after_the_rival_was_elected() -> tuple[int, ZnodeStat] | None:
            if not rival.controller.is_active:
                await node.zookeeper.delete(zk_data.CONTROLLER)
                await rival.controller.startup()
            return await read()

        try:
            await node.zookeeper.create(zk_data.CONTROLLER_EPOCH, b"5")
            await node.zookeeper.create(
                zk_data.CONTROLLER, zk_data.encode_controller(1, 0), ephemeral=True
            )
            monkeypatch.setattr(election, "get_controller_epoch", read_after_the_rival_was_elected)
            await node.controller.startup()
            assert rival.controller.context.epoch == 6
            await until(lambda: node.controller.active_controller_id == 2)
            assert node.tracer.of(Kind.CONTROLLER_ELECTED) == []
        finally:
            await rival.stop()
            await node.stop()

    run(test())


def test_a_dead_leader_is_replaced_and_leaves_the_isr(zookeeper_address: str) -> None:
    async def test() -> None:
        async with nodes(zookeeper_address, 1, 2, 3) as (first, second, _third):
            await create_topic(first, "t", (2, 3, 1), (3, 2, 1))
            await until(lambda: len(first.wire.to(2, "LeaderAndIsr")) == 1)
            await second.stop()
            await until(lambda: len(first.elected("t", 1)) == 2)
            assert first.elected("t", 0)[1:] == [("offline", 3, 1, [3, 1])]
            assert first.elected("t", 1)[1:] == [("remove-from-isr", 3, 1, [3, 1])]
            event = first.tracer.of(Kind.LEADER_ELECTED)[-1]
            _, stat = await first.zookeeper.get(zk_data.state_path(TopicPartition("t", 1)))
            assert (event["zxid"], event["partition_epoch"]) == (stat.mzxid, stat.version)
            assert event["live"] == [1, 3]

    run(test())


def test_the_last_isr_member_stays_and_comes_back_as_leader(zookeeper_address: str) -> None:
    async def test() -> None:
        async with nodes(zookeeper_address, 1, 2) as (first, second):
            await create_topic(first, "t", (2,))
            await until(lambda: len(first.wire.to(2, "LeaderAndIsr")) == 1)
            await second.stop()
            await until(lambda: len(first.elected("t", 0)) == 2)
            again = await Node(zookeeper_address, 2).start()
            try:
                await until(lambda: len(first.elected("t", 0)) == 3)
                assert first.elected("t", 0) == [
                    ("new", 2, 0, [2]),
                    ("remove-from-isr", -1, 1, [2]),
                    ("offline", 2, 2, [2]),
                ]
            finally:
                await again.stop()

    run(test())


@pytest.mark.parametrize(
    ("broker", "topic", "how"),
    [
        (False, b'{"version":1,"config":{}}', "remove-from-isr"),
        (True, b'{"version":1,"config":{}}', "unclean"),
        (False, b'{"version":1,"config":{"unclean.leader.election.enable":"true"}}', "unclean"),
        (
            True,
            b'{"version":1,"config":{"unclean.leader.election.enable":"false"}}',
            "remove-from-isr",
        ),
        (True, b"no JSON", "remove-from-isr"),
    ],
)
def test_an_unclean_election_needs_the_configuration_of_topic_or_broker(
    zookeeper_address: str, broker: bool, topic: bytes, how: str
) -> None:
    async def test() -> None:
        properties = {"unclean.leader.election.enable": broker}
        async with nodes(zookeeper_address, 1, 2, **properties) as (first, second):
            await create_topic(first, "t", (2, 1))
            await first.zookeeper.set_data(config_znodes.entity_path("topics", "t"), topic)
            await until(lambda: len(first.elected("t", 0)) == 1)
            shrink = AlterPartitionItem(
                None, TOPIC_ID, 0, 0, ((2, -1),), LeaderRecoveryState.RECOVERED, 0
            )
            error, (answer,) = await first.controller.alter_partitions(
                2, second.controller.broker_epoch, [shrink]
            )
            assert error is ErrorCode.none
            assert not isinstance(answer, ErrorCode)
            assert (answer.isr, answer.leader_epoch, answer.partition_epoch) == ((2,), 0, 1)
            await second.stop()
            await until(lambda: len(first.elected("t", 0)) >= 2)
            await until(lambda: first.controller.context.live_broker_ids == [1])
            assert [detail for detail, *_ in first.elected("t", 0)][:2] == ["new", how]

    run(test())


def test_what_becomes_of_a_proposed_isr_is_traced(zookeeper_address: str) -> None:
    async def test() -> None:
        async with nodes(zookeeper_address, 1, 2) as (first, second):
            await create_topic(first, "t", (2, 1))
            await until(lambda: len(first.elected("t", 0)) == 1)
            epoch = second.controller.broker_epoch
            proposed = (
                (epoch, ((2, epoch),)),
                (epoch, ((2, epoch), (1, 0))),
                (epoch - 1, ((2, epoch),)),
            )
            for carried, isr in proposed:
                item = AlterPartitionItem(
                    None, TOPIC_ID, 0, 0, isr, LeaderRecoveryState.RECOVERED, len(isr) - 1
                )
                await first.controller.alter_partitions(2, carried, [item])
            committed, stale_member, stale_leader = first.tracer.of(Kind.ALTER_PARTITION_HANDLED)
            assert committed.pop("zxid") > first.tracer.of(Kind.LEADER_ELECTED)[0]["zxid"]
            about = {"topic": "t", "topic_id": str(TOPIC_ID), "partition": 0}
            assert committed == {
                **about,
                "peer": 2,
                "broker_epoch": epoch,
                "leader_epoch": 0,
                "partition_epoch": 0,
                "isr": [2],
                "isr_epochs": [epoch],
                "error": "NONE",
            }
            assert stale_member["error"] == "INELIGIBLE_REPLICA"
            assert (stale_member["isr_epochs"], "zxid" in stale_member) == ([epoch, 0], False)
            assert (stale_leader["error"], stale_leader["broker_epoch"]) == (
                "STALE_BROKER_EPOCH",
                epoch - 1,
            )

    run(test())


def test_a_request_is_sent_again_until_it_is_answered(zookeeper_address: str) -> None:
    async def test() -> None:
        async with nodes(zookeeper_address, 1, 2) as (first, second):
            failures = 3

            def answer(port: int, request: object) -> object:
                nonlocal failures
                if type(request).__name__ == "LeaderAndIsrRequest" and port == 9002 and failures:
                    failures -= 1
                    return NetworkError("reset", definite=False)
                return None

            first.wire.answer = answer
            await create_topic(first, "t", (1, 2))
            await until(lambda: len(first.wire.to(2, "LeaderAndIsr")) == 4)
            assert len({id(r) for r in first.wire.to(2, "LeaderAndIsr")}) == 1
            sent = [
                e
                for e in first.tracer.of(Kind.CONTROL_REQUEST_SENT)
                if (e["api"], e["peer"]) == ("LeaderAndIsr", 2)
            ]
            assert (
                sent
                == [
                    {
                        "api": "LeaderAndIsr",
                        "peer": 2,
                        "controller_epoch": 1,
                        "broker_epoch": second.controller.broker_epoch,
                    }
                ]
                * 4
            )

    run(test())


def test_a_stale_controller_epoch_makes_the_controller_give_up_its_term(
    zookeeper_address: str,
) -> None:
    async def test() -> None:
        async with nodes(zookeeper_address, 1, 2) as (first, second):

            def answer(port: int, request: object) -> object:
                stale = getattr(request, "controller_epoch", 0) == 1
                return ok(request, ErrorCode.stale_controller_epoch) if stale else None

            first.wire.answer = answer
            await create_topic(first, "t", (1, 2))
            await until(lambda: len(first.tracer.of(Kind.CONTROLLER_RESIGNED)) == 1)
            await until(lambda: first.controller.is_active or second.controller.is_active)
            (resigned,) = first.tracer.of(Kind.CONTROLLER_RESIGNED)
            assert resigned["controller_epoch"] == 1
            assert "STALE_CONTROLLER_EPOCH" in resigned["reason"]
            active = first if first.controller.is_active else second
            assert active.controller.context.epoch == 2

    run(test())


def test_a_bounced_broker_is_failed_and_started_under_its_new_epoch(
    zookeeper_address: str,
) -> None:
    async def test() -> None:
        async with nodes(zookeeper_address, 1, 2) as (first, second):
            await create_topic(first, "t", (2, 1))
            # The last that is sent under the old epoch.
            await until(lambda: any(r.topic_states for r in first.wire.to(2, "UpdateMetadata")))
            first.wire.sent.clear()
            old = second.controller.broker_epoch
            # Gone and back before the controller looks: delete and create in one multi.
            path = zk_data.broker_path(2)
            data, _ = await second.zookeeper.get(path)
            await second.zookeeper.multi([Delete(path), Create(path, data, ephemeral=True)])
            await until(lambda: len(first.wire.to(2, "LeaderAndIsr")) >= 1)
            epochs = {r.broker_epoch for port, r in first.wire.sent if port == 9002}
            (new,) = epochs
            assert new > old
            assert first.elected("t", 0)[1] == ("offline", 1, 1, [1])

    run(test())


def test_watches_survive_a_lost_connection(zookeeper_address: str) -> None:
    async def test() -> None:
        async with nodes(zookeeper_address, 1, 2) as (first, second):
            for number in range(3):
                session = first.zookeeper.session_id
                states = len(first.tracer.of(Kind.SESSION_STATE))
                await asyncio.to_thread(drop_connection, zookeeper_address, session)
                await until(lambda: len(first.tracer.of(Kind.SESSION_STATE)) >= states + 2)  # noqa: B023
                assert first.zookeeper.session_id == session
                topic = f"t{number}"
                await create_topic(second, topic, (1, 2))
                await until(lambda: len(first.elected(topic, 0)) == 1)  # noqa: B023
            assert first.controller.is_active
            assert first.tracer.of(Kind.CONTROLLER_RESIGNED) == []

    run(test())
