"""A small honest cluster: one partition on three brokers, stepped by numbers, writing the history that it makes.

It follows Kafka's rules (elections from the ISR, epochs raised and fenced, high watermark over the maximal ISR,
truncation by leader epoch, acks=all) under crashes, appends that a killed broker never traced, expired sessions,
deposed leaders and controllers that go on, and control requests that arrive late. Whatever the steps, its history
is correct: a check that convicts it is wrong.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from nemesis.checkers.breaks.events import TP, znode
from nemesis.history.events import Event

NODES = (1, 2, 3)
STATE = "/brokers/topics/t/partitions/0/state"
UNHEARD = -1

Record = tuple[int, int]
"""(leader epoch, value)"""


@dataclass(frozen=True)
class Order:
    """A LeaderAndIsr request on its way."""

    controller_epoch: int
    controller: int
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    partition_epoch: int
    broker_epoch: int = -1
    """The receiver's, as the controller knows it."""


@dataclass
class Broker:
    node: int
    session: int
    incarnation: int = 1
    epoch: int = -1
    """The zxid of its registration."""
    alive: bool = True
    log: list[Record] = field(default_factory=list)
    checkpoint: int = 0
    inbox: list[Order] = field(default_factory=list)
    controller_epoch: int = 0
    leader: int = -1
    leader_epoch: int = -1
    partition_epoch: int = -1
    high_watermark: int = 0
    epoch_start: int = 0
    """Where its log ended when it became leader: a replica that lacks that much may not join (KAFKA-7128)."""
    isr: tuple[int, ...] = ()
    proposed: tuple[int, ...] | None = None
    remote: dict[int, int] = field(default_factory=dict)
    remote_epochs: dict[int, int] = field(default_factory=dict)
    """The broker epochs with which the others fetched last."""
    waiting: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    """Produces that wait for the high watermark: (offset, columns of their operation)."""

    @property
    def leads(self) -> bool:
        return self.alive and self.leader == self.node

    @property
    def maximal_isr(self) -> tuple[int, ...]:
        return tuple(sorted({*self.isr, *(self.proposed or ())}))


class HonestCluster:
    def __init__(self) -> None:
        self.events: list[Event] = []
        self.now = 0
        self.zxid = 0
        self.ops = 0
        self.sessions = 100
        self.brokers = {node: Broker(node, 10 * node) for node in NODES}
        self.controller, self.epoch = -1, 0
        self.live: dict[int, int] = {}
        """Broker → broker epoch, as the controller sees it."""
        self.partition_state = "NonExistent"
        self.replica_states: dict[int, str] = {}
        self.position = 0
        self.fetches: Counter[tuple[int, int]] = Counter()
        """By fetch session of the consumer, which is broker and incarnation, its fetches."""
        self.committed: Order | None = None
        self._znode(9, "/controller_epoch", zk_op="create", controller_epoch=0)
        for broker in self.brokers.values():
            self._trace(broker, "broker-started")
            self._trace(broker, "exceptions-watched")
            self._register(broker)
            empty = {"log_end_offset": 0, "high_watermark": 0, "producers_end": 0}
            self._trace(broker, "log-loaded", **empty)
        self._elect_controller(1)
        self._administer(
            "create-topic", {"partition_count": 1, "partition": None, "topic_id": None}, {}
        )
        self._administer("describe", {"topic_id": None}, {"replicas": list(NODES)})
        self._replicas_become("New", NODES)
        self._partition_becomes("New")
        self._commit(1, 0, NODES, strategy="new")
        self._partition_becomes("Online")
        self._replicas_become("Online", NODES)

    # -- writing -------------------------------------------------------------------------------

    def _tick(self) -> int:
        self.now += 1
        return self.now

    def _trace(self, broker: Broker, kind: str, **columns: Any) -> None:
        about = TP if kind not in _CLUSTER_WIDE else {}
        self.events.append(
            Event(
                time=self._tick(),
                process=f"broker-{broker.node}",
                node=broker.node,
                incarnation=broker.incarnation,
                seq=self.now,
                kind=kind,
                **{**about, **columns},
            )
        )

    def _znode(self, session: int, path: str, *, same: int = 0, **columns: Any) -> None:
        """``same`` > 0: a further part of the multi that was written last."""
        self.zxid += same == 0
        self.events.append(znode(self.zxid, session, path, seq=same, **columns))

    def _client(self, process: str, kind: str, **columns: Any) -> None:
        self.events.append(
            Event(time=self._tick(), process=process, seq=self.now, kind=kind, **{**TP, **columns})
        )

    def _administer(self, f: str, asked: dict[str, Any], reported: dict[str, Any]) -> None:
        self.ops += 1
        for kind, columns in ("invoke", asked), ("ok", asked | reported):
            self._client("admin-0", kind, op=self.ops, f=f, **columns)

    def _look(self, label: str, node: int | None, **columns: Any) -> None:
        """What the harness sees at the end: the partition, and that there is nothing else."""
        about = {"source": label, "node": node, "error": "NONE"}
        nothing = {"topic": None, "partition": None, "topic_id": None}
        self._client("harness", "end-state", **about, **columns)
        self._client("harness", "end-state", **about, **nothing, count=1)

    # -- the controller ------------------------------------------------------------------------

    def _register(self, broker: Broker) -> None:
        self._znode(broker.session, f"/brokers/ids/{broker.node}", zk_op="create", node=broker.node)
        broker.epoch = self.zxid
        about = {"session": broker.session, "zxid": self.zxid, "broker_epoch": broker.epoch}
        self._trace(broker, "broker-registered", **about)

    def _elect_controller(self, node: int) -> None:
        broker = self.brokers[node]
        self.controller, self.epoch = node, self.epoch + 1
        self._znode(broker.session, "/controller", zk_op="create", controller_id=node)
        self._znode(broker.session, "/controller_epoch", same=1, controller_epoch=self.epoch)
        about = {"controller_epoch": self.epoch, "zxid": self.zxid, "session": broker.session}
        self._trace(broker, "controller-elected", **about)
        self._see_who_is_alive()
        self._start_state_machines()

    def _see_who_is_alive(self) -> None:
        self.live = {broker.node: broker.epoch for broker in self.brokers.values() if broker.alive}

    def _start_state_machines(self) -> None:
        """The states that a failover finds are not traced; what it does about them is."""
        if self.committed is None:
            return
        self.partition_state = "Online" if self.committed.leader in self.live else "Offline"
        alive = {node: node in self.live for node in NODES}
        self.replica_states = {
            node: "Online" if alive[node] else "DeletionIneligible" for node in NODES
        }
        self._replicas_become("Online", [node for node in NODES if alive[node]])
        self._replicas_become("Offline", [node for node in NODES if not alive[node]])

    def _partition_becomes(self, state: str) -> None:
        before, self.partition_state = self.partition_state, state
        self._transition(before, state)

    def _replicas_become(self, state: str, nodes: Iterable[int]) -> None:
        for node in nodes:
            before = self.replica_states.get(node, "NonExistent")
            self.replica_states[node] = state
            self._transition(before, state, replica=node)

    def _transition(self, before: str, after: str, **columns: Any) -> None:
        boss = self.brokers[self.controller]
        states = {"from_state": before, "to_state": after}
        self._trace(boss, "transition", controller_epoch=self.epoch, **states, **columns)

    def _commit(self, leader: int, leader_epoch: int, isr: Iterable[int], *, strategy: str) -> None:
        """Write the partition's state and send it to everybody that the controller believes alive."""
        before = self.committed
        members = tuple(isr)
        epoch = 0 if before is None else before.partition_epoch + 1
        boss = self.brokers[self.controller]
        sequence = Order(self.epoch, boss.node, leader, leader_epoch, members, epoch)
        self.committed = sequence
        state: dict[str, Any] = {
            "leader": leader,
            "leader_epoch": leader_epoch,
            "isr": list(members),
            **TP,
        }
        op = "create" if before is None else "setData"
        self._znode(boss.session, "/controller_epoch", zk_op="check", zk_version=self.epoch)
        written = {"zk_op": op, "zk_version": epoch, "controller_epoch": self.epoch}
        self._znode(boss.session, STATE, same=1, **written, **state)
        if before is None or leader_epoch != before.leader_epoch:
            about: dict[str, Any] = {
                "replicas": list(NODES),
                "live": sorted(self.live),
                "strategy": strategy,
            }
            about |= {"zxid": self.zxid, "controller_epoch": self.epoch}
            self._trace(boss, "leader-elected", **state, **about)
        self._send(sequence)

    def _send(self, state: Order) -> None:
        reported = replace(state, controller_epoch=self.epoch, controller=self.controller)
        for node in sorted(self.live):
            sequence = replace(reported, broker_epoch=self.live[node])
            self._trace(
                self.brokers[self.controller],
                "control-request-sent",
                peer=node,
                controller_epoch=sequence.controller_epoch,
                broker_epoch=sequence.broker_epoch,
            )
            self.brokers[node].inbox.append(sequence)

    def _notice(self) -> None:
        """The controller's sight of who is alive, and what follows from it."""
        boss = self.brokers[self.controller]
        if not boss.alive:
            chosen = next((node for node in NODES if self.brokers[node].alive), None)
            if chosen is None:
                return
            self._elect_controller(chosen)
        before = self.live
        self._see_who_is_alive()
        gone = [node for node, epoch in before.items() if self.live.get(node) != epoch]
        come = [node for node, epoch in self.live.items() if before.get(node) != epoch]
        self._elect_leader()
        self._replicas_become("Offline", gone)
        self._replicas_become("Online", come)

    def _elect_leader(self) -> None:
        assert self.committed is not None
        now = self.committed
        isr = tuple(node for node in now.isr if node in self.live)
        if now.leader in self.live:
            self._send(now)
            return
        self._partition_becomes("Offline")
        if isr:
            self._commit(isr[0], now.leader_epoch + 1, isr, strategy="offline")
            self._partition_becomes("Online")
        elif now.leader != -1:
            self._commit(-1, now.leader_epoch + 1, now.isr, strategy="remove-from-isr")

    # -- the brokers ---------------------------------------------------------------------------

    def _deliver(self, broker: Broker) -> None:
        if not broker.alive or not broker.inbox:
            return
        sequence = broker.inbox.pop(0)
        error = "NONE"
        if sequence.broker_epoch < broker.epoch:
            error = "STALE_BROKER_EPOCH"
        elif self.is_stale(broker, sequence):
            error = "STALE_CONTROLLER_EPOCH"
        self._trace(
            broker,
            "control-request-handled",
            api="LeaderAndIsr",
            peer=sequence.controller,
            controller_epoch=sequence.controller_epoch,
            broker_epoch=sequence.broker_epoch,
            error=error,
        )
        if error != "NONE":
            return
        self._update_metadata(broker, sequence)
        broker.controller_epoch = sequence.controller_epoch
        if (sequence.leader_epoch, sequence.partition_epoch) <= (
            broker.leader_epoch,
            broker.partition_epoch,
        ):
            return
        self._follow_order(broker, sequence)
        self._answer(broker, "UpdateMetadata", sequence)
        self._answer(broker, "LeaderAndIsr", sequence)

    def _update_metadata(self, broker: Broker, sequence: Order) -> None:
        about = {"peer": sequence.controller, "controller_epoch": sequence.controller_epoch}
        self._trace(broker, "metadata-updated", count=1, live=list(NODES), **about)

    def _answer(self, broker: Broker, api: str, sequence: Order) -> None:
        self._trace(
            broker,
            "control-request-answered",
            api=api,
            leader=sequence.leader,
            leader_epoch=sequence.leader_epoch,
            partition_epoch=sequence.partition_epoch,
            error="NONE",
        )

    def _follow_order(self, broker: Broker, sequence: Order) -> None:
        newer = sequence.leader_epoch > broker.leader_epoch
        self._trace(
            broker,
            "partition-metadata",
            leader=sequence.leader,
            leader_epoch=sequence.leader_epoch,
            partition_epoch=sequence.partition_epoch,
            controller_epoch=sequence.controller_epoch,
        )
        broker.leader, broker.leader_epoch = sequence.leader, sequence.leader_epoch
        broker.partition_epoch, broker.isr, broker.proposed = (
            sequence.partition_epoch,
            sequence.isr,
            None,
        )
        about = {
            "leader_epoch": sequence.leader_epoch,
            "controller_epoch": sequence.controller_epoch,
            "log_end_offset": len(broker.log),
            "high_watermark": broker.high_watermark,
            "producers_end": len(broker.log),
        }
        if not broker.leads:
            for _, operation in broker.waiting:
                self._client("producer-0", "info", **operation, error="NOT_LEADER_OR_FOLLOWER")
            broker.waiting.clear()
            self._trace(broker, "become-follower", leader=sequence.leader, **about)
            return
        if newer:
            broker.remote = dict.fromkeys(set(NODES) - {broker.node}, UNHEARD)
            broker.remote_epochs = {}
            broker.epoch_start = len(broker.log)
        self._trace(broker, "become-leader", isr=list(sequence.isr), log_start_offset=0, **about)
        self._raise_high_watermark(broker)

    def _append(self, broker: Broker, record: Record, role: str) -> None:
        broker.log.append(record)
        index = len(broker.log) - 1
        about = {"offset": index, "last_offset": index, "log_end_offset": index + 1}
        crc = 1000 + record[1]
        self._trace(broker, "append", role=role, leader_epoch=record[0], crc=crc, **about)

    def _raise_high_watermark(self, broker: Broker) -> None:
        mark = self.high_watermark_candidate(broker)
        if mark > broker.high_watermark:
            broker.high_watermark = mark
            self._trace(
                broker,
                "high-watermark",
                leader_epoch=broker.leader_epoch,
                high_watermark=mark,
                log_end_offset=len(broker.log),
                isr=list(broker.isr),
                maximal_isr=list(broker.maximal_isr),
            )
        self._acknowledge(broker)

    def _acknowledge(self, broker: Broker) -> None:
        mark = broker.high_watermark
        done = [item for item in broker.waiting if self.is_replicated(broker, item[0])]
        for offset, operation in done:
            about: dict[str, Any] = {
                "offset": offset,
                "last_offset": offset,
                "acks": -1,
                "high_watermark": mark,
            }
            about |= {"isr": list(broker.isr)}
            self._trace(broker, "produce-acknowledged", leader_epoch=broker.leader_epoch, **about)
            self._client("producer-0", "ok", **operation, offset=offset, node=broker.node)
        broker.waiting = [item for item in broker.waiting if item not in done]

    # The rules that planted bugs break, each in a method of its own.

    def is_stale(self, broker: Broker, sequence: Order) -> bool:
        return sequence.controller_epoch < broker.controller_epoch

    def high_watermark_candidate(self, broker: Broker) -> int:
        ends = [
            broker.remote.get(node, UNHEARD) for node in broker.maximal_isr if node != broker.node
        ]
        return min([len(broker.log), *ends])

    def is_replicated(self, broker: Broker, offset: int) -> bool:
        return offset < broker.high_watermark

    def _fetch(self, broker: Broker, *, traced: bool = True) -> None:
        """One fetch of a follower: cut what diverges, else append one record."""
        leader = self.brokers.get(broker.leader)
        if not broker.alive or leader is None or leader is broker or not leader.leads:
            return
        if leader.leader_epoch != broker.leader_epoch:
            return
        agreed = 0
        for own, other in zip(broker.log, leader.log, strict=False):
            if own[0] != other[0]:
                break
            agreed += 1
        if agreed < len(broker.log):
            del broker.log[agreed:]
            before, broker.high_watermark = (
                broker.high_watermark,
                min(broker.high_watermark, agreed),
            )
            self._trace(
                broker,
                "truncate",
                offset=agreed,
                log_end_offset=agreed,
                producers_end=agreed,
                high_watermark=broker.high_watermark,
                high_watermark_before=before,
                leader_epoch=broker.leader_epoch,
            )
            return
        if traced:
            leader.remote[broker.node] = agreed
            self._learn_epoch(leader, broker)
            self._raise_high_watermark(leader)
        if agreed < len(leader.log):
            if traced:
                self._append(broker, leader.log[agreed], "follower")
            else:
                broker.log.append(leader.log[agreed])
        broker.high_watermark = min(leader.high_watermark, len(broker.log))

    def _learn_epoch(self, leader: Broker, follower: Broker) -> None:
        """The leader learns with which broker epoch the follower fetches."""
        if leader.remote_epochs.get(follower.node) != follower.epoch:
            leader.remote_epochs[follower.node] = follower.epoch
            self._trace(
                leader,
                "follower-epoch",
                replica=follower.node,
                leader_epoch=leader.leader_epoch,
                broker_epoch=follower.epoch,
            )

    def _produce(self, broker: Broker) -> None:
        self.ops += 1
        operation = {"op": self.ops, "f": "send", "value": self.ops, "acks": -1}
        self._client("producer-0", "invoke", **operation)
        if not broker.leads:
            self._client("producer-0", "fail", **operation, error="CONNECTION_REFUSED")
            return
        self._append(broker, (broker.leader_epoch, self.ops), "leader")
        broker.waiting.append((len(broker.log) - 1, operation))
        self._raise_high_watermark(broker)

    def _propose_isr(self, broker: Broker) -> None:
        """The leader drops a silent member, or takes in a replica that has caught up."""
        if not broker.leads or broker.proposed is not None:
            return
        out = [node for node in NODES if node not in broker.isr]
        needed = max(broker.high_watermark, broker.epoch_start)
        caught_up = [node for node in out if broker.remote.get(node, UNHEARD) >= needed]
        lagging = [
            n
            for n in broker.isr
            if n != broker.node and broker.remote.get(n, UNHEARD) < len(broker.log)
        ]
        if caught_up:
            broker.proposed = tuple(sorted({*broker.isr, caught_up[0]}))
        elif lagging:
            broker.proposed = tuple(node for node in broker.isr if node != lagging[0])
        else:
            return
        self._trace(
            broker,
            "isr-change-proposed",
            leader_epoch=broker.leader_epoch,
            partition_epoch=broker.partition_epoch,
            isr=list(broker.isr),
            maximal_isr=list(broker.maximal_isr),
            change="expand" if caught_up else "shrink",
        )

    def _commit_isr(self, broker: Broker) -> None:
        """The controller takes the proposal if the leader's view is current, else the leader waits for its news."""
        assert self.committed is not None
        now = self.committed
        fresh = (now.leader_epoch, now.partition_epoch) == (
            broker.leader_epoch,
            broker.partition_epoch,
        )
        if not broker.leads or broker.proposed is None or not fresh:
            return
        if not self.brokers[self.controller].alive or broker.epoch != self.live.get(broker.node):
            return
        # KIP-903: the members are those whom the leader saw catch up.
        saw = {**broker.remote_epochs, broker.node: broker.epoch}
        if any(node not in saw or saw[node] != self.live.get(node) for node in broker.proposed):
            broker.proposed = None
            return
        self._commit(now.leader, now.leader_epoch, broker.proposed, strategy="alter-partition")
        assert self.committed is not None
        self._trace(
            self.brokers[self.controller],
            "alter-partition-handled",
            peer=broker.node,
            broker_epoch=broker.epoch,
            leader_epoch=broker.leader_epoch,
            partition_epoch=broker.partition_epoch,
            isr=list(broker.proposed),
            isr_epochs=[saw[node] for node in broker.proposed],
            error="NONE",
            zxid=self.zxid,
        )
        broker.isr, broker.proposed = self.committed.isr, None
        broker.partition_epoch = self.committed.partition_epoch
        self._raise_high_watermark(broker)

    def _kill(self, broker: Broker) -> None:
        if not broker.alive:
            return
        self._fetch(broker, traced=False)
        broker.alive = False
        for _, operation in broker.waiting:
            self._client("producer-0", "info", **operation, error="DISCONNECTED")
        broker.waiting.clear()

    def _restart(self, broker: Broker) -> None:
        if broker.alive:
            return
        self.sessions += 1
        fresh = Broker(broker.node, self.sessions, broker.incarnation + 1, log=broker.log)
        fresh.inbox = broker.inbox  # what was said to the life before is still on its way
        # The checkpointed high watermark is older than the one that the broker had.
        fresh.high_watermark = fresh.checkpoint = min(broker.checkpoint, len(broker.log))
        # The leader epochs of its log outlive the process, the controller epoch does not.
        self.brokers[broker.node] = fresh
        self._trace(fresh, "broker-started")
        self._trace(fresh, "exceptions-watched")
        self._register(fresh)
        about = {"log_end_offset": len(fresh.log), "high_watermark": fresh.high_watermark}
        about["producers_end"] = len(fresh.log)
        self._trace(fresh, "log-loaded", **about)
        if fresh.node == self.controller:
            self._elect_controller(fresh.node)

    def _lose_session(self, broker: Broker) -> None:
        """It goes on as if nothing had happened until it hears of it: a zombie."""
        assert self.committed is not None
        if not broker.alive:
            return
        self.sessions += 1
        broker.session = self.sessions
        self._register(broker)
        if broker.node == self.controller:
            others = [n for n in NODES if n != broker.node and self.brokers[n].alive]
            self._elect_controller(others[0] if others else broker.node)
        self.live.pop(broker.node, None)
        self._elect_leader()

    def _poll(self, broker: Broker) -> None:
        if not broker.leads:
            return
        self.ops += 1
        operation = {"op": self.ops, "f": "poll", "offset": self.position}
        self._client("consumer-0", "invoke", **operation)
        offsets = list(range(self.position, broker.high_watermark))
        values = [broker.log[offset][1] for offset in offsets]
        mark = broker.high_watermark
        about = {"offsets": offsets, "values": values, "high_watermark": mark, "node": broker.node}
        self._fetch_in_session(broker)
        self._client("consumer-0", "ok", **operation, **about)
        self.position = max(self.position, mark)

    def _fetch_in_session(self, broker: Broker) -> None:
        """In a session with the broker the consumer adds another partition, and removes it with the next fetch."""
        session = (broker.node, broker.incarnation)
        epoch = self.fetches[session]
        self.fetches[session] += 1
        asked = ["id-0", "id-1"][: 1 + epoch % 2]
        self._client(
            "consumer-0",
            "fetch-received",
            **dict.fromkeys(TP),
            node=broker.node,
            fetch_session=broker.incarnation if epoch else 0,
            fetch_epoch=epoch,
            asked=asked,
            forgotten=["id-1"] if epoch and epoch % 2 == 0 else [],
            answered=asked,
            failed=[],
            error="NONE",
            duration_ms=0,
        )

    def _query(self, broker: Broker) -> None:
        """A client asks for the last offset; a new leader answers when it has reached the start of its epoch."""
        if not broker.leads:
            return
        self._ask_for_epoch(broker, self.now % (broker.leader_epoch + 1))
        self.ops += 1
        operation = {"op": self.ops, "f": "latest-offset", "node": broker.node}
        stated = operation["leader_epoch"] = broker.leader_epoch - self.now % 2
        self._client("query-0", "invoke", **operation)
        if stated < broker.leader_epoch:
            self._client("query-0", "fail", **operation, error="FENCED_LEADER_EPOCH")
        elif broker.high_watermark < broker.epoch_start:
            self._client("query-0", "fail", **operation, error="OFFSET_NOT_AVAILABLE")
        else:
            self._client("query-0", "ok", **operation, offset=broker.high_watermark)

    def _ask_for_epoch(self, broker: Broker, asked: int) -> None:
        self.ops += 1
        operation = {"op": self.ops, "f": "epoch-end", "node": broker.node}
        self._client("query-0", "invoke", **operation, leader_epoch=asked)
        epochs = sorted({epoch for epoch, _ in broker.log} | {broker.leader_epoch})
        floor = max((epoch for epoch in epochs if epoch <= asked), default=asked)
        end = sum(epoch <= asked for epoch, _ in broker.log)
        self._client("query-0", "ok", **operation, leader_epoch=floor, offset=end)

    # -- the run -------------------------------------------------------------------------------

    def step(self, action: int, node: int) -> None:
        broker = self.brokers[node]
        actions = (
            self._produce,
            self._fetch,
            self._deliver,
            self._propose_isr,
            self._commit_isr,
            self._poll,
            self._kill,
            self._restart,
            lambda _: self._notice(),
            self._lose_session,
            self._save,
            self._hold,
            self._query,
        )
        actions[action % len(actions)](broker)

    def _save(self, broker: Broker) -> None:
        broker.checkpoint = broker.high_watermark

    def _hold(self, broker: Broker) -> None:
        """What one controller sent is held back behind what the others sent."""
        if broker.inbox:
            held = broker.inbox[0].controller_epoch
            broker.inbox.sort(key=lambda sequence: sequence.controller_epoch == held)

    def finish(self) -> list[Event]:
        """Heal everything, let it settle, read to the end."""
        for broker in list(self.brokers.values()):
            self._restart(broker)
        for _ in range(3):
            self._notice()
            for node in NODES:
                while self.brokers[node].inbox:
                    self._deliver(self.brokers[node])
            self._settle()
        leader = next(broker for broker in self.brokers.values() if self._is_true_leader(broker))
        self.ops += 1
        offsets = list(range(leader.high_watermark))
        operation = {"op": self.ops, "f": "poll", "offset": 0}
        self._client("final-0", "invoke", **operation)
        values = [leader.log[offset][1] for offset in offsets]
        mark = leader.high_watermark
        stated = {"high_watermark": mark, "log_start_offset": 0, "node": leader.node}
        last = {"last_offset": mark - 1} if mark else {}
        self._client("final-0", "ok", **operation, offsets=offsets, values=values, **stated, **last)
        self._find_end(leader, mark, stated)
        self._client("final-0", "final-read", offset=mark, high_watermark=mark, error="NONE")
        self._look("zookeeper", None, replicas=list(NODES), isr=list(NODES))
        for node in NODES:
            self._look("metadata", node, replicas=list(NODES), isr=list(NODES))
            self._look("logs", node)
        for broker in self.brokers.values():
            self._answer_at_rest(broker)
        self._sample(leader, high_watermark=leader.high_watermark)
        for broker in self.brokers.values():
            self._sample(broker, log_end_offset=len(broker.log))
        for broker in self.brokers.values():
            self._store(broker)
        return self.events

    def _find_end(self, leader: Broker, mark: int, stated: dict[str, int]) -> None:
        """The final reader finds nothing behind the high watermark, and that the log ends there."""
        for f, asked, answer in (
            ("poll", {"offset": mark}, {"offsets": [], "values": [], **stated}),
            ("latest-offset", {"node": leader.node}, {"offset": mark}),
        ):
            self.ops += 1
            operation = {"op": self.ops, "f": f, **asked}
            self._client("final-0", "invoke", **operation)
            self._client("final-0", "ok", **operation | answer)

    def _answer_at_rest(self, broker: Broker) -> None:
        """What a replica says of its log when the harness asks at the end, and nothing has changed for long."""
        assert self.committed is not None
        self._client(
            "harness",
            "replica-offsets",
            node=broker.node,
            leader=self.committed.leader,
            leader_epoch=self.committed.leader_epoch,
            replicas=list(NODES),
            isr=list(self.committed.isr),
            log_start_offset=0,
            high_watermark=broker.high_watermark,
            log_end_offset=len(broker.log),
            duration_ms=1_000,
            error="NONE",
        )

    def _sample(self, broker: Broker, **offset: int) -> None:
        """What a replica answers during a run; the model looks once, when it ends."""
        assert self.committed is not None
        self._client(
            "harness",
            "replica-sample",
            node=broker.node,
            leader=self.committed.leader,
            leader_epoch=self.committed.leader_epoch,
            broker_epoch=0,
            isr=list(self.committed.isr),
            **offset,
        )

    def _store(self, broker: Broker) -> None:
        """What its files have."""
        about: dict[str, Any] = {"process": "harness", "node": broker.node}
        self.events.append(
            Event(
                time=self._tick(),
                seq=self.now,
                kind="stored-log",
                log_start_offset=0,
                log_end_offset=len(broker.log),
                high_watermark=broker.high_watermark,
                cleaner_offset=0,
                alive=True,
                error="NONE",
                **about,
                **TP,
            )
        )
        for index, (epoch, value) in enumerate(broker.log):
            self.events.append(
                Event(
                    time=self._tick(),
                    seq=self.now,
                    kind="stored-batch",
                    offset=index,
                    last_offset=index,
                    leader_epoch=epoch,
                    crc=1000 + value,
                    **about,
                    **TP,
                )
            )

    def _is_true_leader(self, broker: Broker) -> bool:
        assert self.committed is not None
        return broker.leads and broker.leader_epoch == self.committed.leader_epoch

    def _settle(self) -> None:
        rounds = 2 + 2 * max(len(broker.log) for broker in self.brokers.values())
        for _ in range(rounds):
            for node in NODES:
                self._fetch(self.brokers[node])
        for _ in NODES:
            for broker in self.brokers.values():
                if self._is_true_leader(broker):
                    self._propose_isr(broker)
                    self._commit_isr(broker)
                    while broker.inbox:
                        self._deliver(broker)


_CLUSTER_WIDE = frozenset(
    {
        "broker-started",
        "exceptions-watched",
        "broker-registered",
        "controller-elected",
        "control-request-sent",
        "control-request-handled",
        "metadata-updated",
    }
)
