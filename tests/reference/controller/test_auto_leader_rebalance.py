"""When the balance of preferred leaders is looked at; what it then does is in test_replica_leader_elections."""

from __future__ import annotations

import asyncio

from nemesis.reference.controller.auto_leader_rebalance import AutoLeaderRebalance
from nemesis.reference.controller.controller_context import ControllerContext
from nemesis.reference.controller.controller_events import AutoPreferredReplicaLeaderElection, Event
from nemesis.reference.controller.replica_leader_elections import ReplicaLeaderElections
from nemesis.reference.kafka_scheduler import KafkaScheduler
from nemesis.reference.zk.fenced_writes import ControllerFence
from tests.reference.controller.cluster import config
from tests.reference.controller.state_machines import Machines
from tests.reference.virtual_time import run


class Balance:
    """The task of a controller without topics, and when it queued its event."""

    def __init__(self, *, enabled: bool = True) -> None:
        self.queued: list[float] = []
        machines = Machines()
        self.context = ControllerContext()
        self.context.fence = ControllerFence(1, 1)
        elections = ReplicaLeaderElections(
            self.context,
            zk_client=machines.zk_client,
            partition_state_machine=machines.partitions,
            tracer=machines.tracer,
            put=self._put,
        )
        self.task = AutoLeaderRebalance(
            config(
                1,
                **{
                    "auto.leader.rebalance.enable": enabled,
                    "leader.imbalance.check.interval.seconds": 100,
                },
            ),
            self.context,
            elections=elections,
            scheduler=KafkaScheduler(),
            tracer=machines.tracer,
            put=self._put,
        )

    def _put(self, event: Event) -> None:
        assert isinstance(event, AutoPreferredReplicaLeaderElection)
        self.queued.append(asyncio.get_running_loop().time())


def test_the_first_look_comes_soon_and_the_others_at_the_interval() -> None:
    async def test() -> None:
        balance = Balance()
        balance.task.startup()
        await asyncio.sleep(50)
        await balance.task.process()
        await asyncio.sleep(1000)
        assert balance.queued == [5, 150]  # Not again before the event was processed.
        await balance.task.shutdown()

    run(test())


def test_the_job_has_kafkas_name_and_is_one_at_most() -> None:
    """An event of an earlier term may be processed in the next one, while its first look is scheduled."""

    async def test() -> None:
        balance = Balance()
        balance.task.startup()
        await balance.task.process()
        jobs = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        assert [job.get_name() for job in jobs] == ["auto-leader-rebalance-task"]
        await asyncio.sleep(1000)
        assert balance.queued == [5]
        await balance.task.shutdown()

    run(test())


def test_nothing_is_looked_at_when_it_is_not_wanted() -> None:
    async def test() -> None:
        balance = Balance(enabled=False)
        balance.task.startup()
        await asyncio.sleep(1000)
        assert balance.queued == []

    run(test())


def test_a_controller_that_resigned_looks_no_more() -> None:
    async def test() -> None:
        balance = Balance()
        balance.task.startup()
        await balance.task.shutdown()
        balance.context.reset()
        await balance.task.process()
        await asyncio.sleep(1000)
        assert balance.queued == []

    run(test())
