"""From the committed records of a KRaft quorum to events: the same that ZooKeeper's transaction log gives.

A record is an event of the znode that a cluster with ZooKeeper has in its place, with the same columns, so that
checkers judge both kinds of clusters:

* RegisterBroker, BrokerRegistrationChange and so on: ``/brokers/ids/N`` exists while the broker is registered and not
  fenced, and ``broker_epoch`` is that of the registration;
* Topic, Partition, PartitionChange, RemoveTopic: ``/brokers/topics/T`` with the assignment, and
  ``/brokers/topics/T/partitions/P/state``; ``data`` also has the eligible leader replicas (KIP-966), and whether the
  record completed a reassignment;
* Config: ``/config/topics/T`` and ``/config/brokers/N``, with all settings that the resource then has;
* LeaderChange: ``/controller`` and ``/controller_epoch``.

``zxid`` is the offset of the record, ``session`` is 0. The records of a transaction (KIP-868) become events at its end;
those of one that is aborted do not. There are no sessions, no versions and no refused writes.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from struct import Struct
from typing import Any, Final, NamedTuple
from uuid import UUID

import msgspec

from nemesis.history import quorum_records as names
from nemesis.history.events import Event, Kind
from nemesis.history.quorum_log import QuorumBatch
from nemesis.history.quorum_records import MetadataRecord, decode
from nemesis.history.znodes import NO_TIME

PROCESS: Final = "quorum"
_CONTROL_KEY: Final = Struct(">hh")
"""Version and type of a control record."""
_LEADER_CHANGE: Final = 2
_LEADER: Final = Struct(">hi")
"""How a LeaderChange begins: version, leader."""
_SAME_LEADER: Final = -2
_UNCHANGED: Final = -1
_FENCED, _UNFENCED = 1, -1
_TOPIC_CONFIG, _BROKER_CONFIG = 2, 4
_ELR: Final = ("EligibleLeaderReplicas", "LastKnownElr")
_TOPICS: Final = "/brokers/topics/"
_BROKERS: Final = "/brokers/ids/"
_CONTROLLER: Final = "/controller"


class Change(NamedTuple):
    """One znode that a record changes; without ``data`` it is deleted."""

    path: str
    data: Any
    columns: dict[str, Any]


@dataclass(slots=True)
class PartitionState:
    """What the log says of a partition, in the terms of ``PartitionRecord``."""

    values: dict[str, Any]
    ends_reassignment: bool = False
    """Whether the record that made it completed a reassignment, or took it back."""

    @property
    def is_moving(self) -> bool:
        return bool(self.values["AddingReplicas"] or self.values["RemovingReplicas"])

    def changed_by(self, change: MetadataRecord) -> PartitionState:
        """Return the state after a PartitionChange: what it leaves out stays."""
        before, values = self.values, change.values
        after = {
            name: before[name] if values[name] is None else values[name]
            for name in ("Isr", "Replicas", "RemovingReplicas", "AddingReplicas", *_ELR)
        }
        if values["Leader"] == _SAME_LEADER:
            after |= {name: before[name] for name in ("Leader", "LeaderEpoch")}
        else:
            after |= {"Leader": values["Leader"], "LeaderEpoch": before["LeaderEpoch"] + 1}
        recovery = values["LeaderRecoveryState"]
        after["LeaderRecoveryState"] = (
            before["LeaderRecoveryState"] if recovery == _UNCHANGED else recovery
        )
        changed = PartitionState(
            {**before, **after, "PartitionEpoch": before["PartitionEpoch"] + 1}
        )
        changed.ends_reassignment = self.is_moving and not changed.is_moving
        return changed

    def data(self, quorum_epoch: int) -> dict[str, Any]:
        """Return the state as a state znode has it, and the eligible leader replicas."""
        values = self.values
        return {
            "version": 1,
            "controller_epoch": quorum_epoch,
            "leader": values["Leader"],
            "leader_epoch": values["LeaderEpoch"],
            "isr": values["Isr"],
            "leader_recovery_state": values["LeaderRecoveryState"],
            "elr": values["EligibleLeaderReplicas"] or [],
            "last_known_elr": values["LastKnownElr"] or [],
            "ends_reassignment": self.ends_reassignment,
        }


@dataclass(slots=True)
class Topic:
    """A topic that exists."""

    name: str
    topic_id: UUID
    partitions: dict[int, PartitionState] = field(default_factory=dict)
    announced: set[int] = field(default_factory=set)
    """The partitions that the topic's znode has."""

    def znode(self, assigned: dict[int, dict[str, Any]]) -> Change:
        """Return the topic's znode with these assignments."""
        data = {
            "version": 3,
            "topic_id": urlsafe_b64encode(self.topic_id.bytes).decode().rstrip("="),
            "partitions": _listed(assigned, "Replicas"),
            "adding_replicas": _listed(assigned, "AddingReplicas"),
            "removing_replicas": _listed(assigned, "RemovingReplicas"),
        }
        return Change(f"{_TOPICS}{self.name}", data, self.columns)

    @property
    def columns(self) -> dict[str, Any]:
        return {"topic": self.name, "topic_id": str(self.topic_id)}

    def assigned(self) -> dict[int, dict[str, Any]]:
        return {number: state.values for number, state in self.partitions.items()}

    def state_path(self, partition: int) -> str:
        return f"{_TOPICS}{self.name}/partitions/{partition}/state"


class QuorumEvents:
    """Turns committed batches, fed in the order of their offsets, into events."""

    def __init__(self) -> None:
        self._topics: dict[UUID, Topic] = {}
        self._epochs: dict[int, int] = {}
        """Broker → the epoch of its registration."""
        self._configs: dict[str, dict[str, str]] = {}
        self._existing: dict[str, int] = {}
        """Path → how often it was written since it was created."""
        self._transaction: list[tuple[int, MetadataRecord]] | None = None

    def events(self, batches: Iterable[QuorumBatch]) -> Iterator[Event]:
        """Yield the events of each batch; raises ValueError for records that cannot be read."""
        for batch in batches:
            if batch.is_control:
                yield from self._of_the_quorum(batch)
                continue
            decoded = [
                (offset, record)
                for offset, _, value in batch.records()
                if value is not None and (record := decode(value)) is not None
            ]
            for group in self._complete(decoded):
                for position, (offset, record) in enumerate(group):
                    later = [other for _, other in group[position + 1 :]]
                    yield from self._written(batch, offset, self._changes(batch, record, later))

    def _of_the_quorum(self, batch: QuorumBatch) -> Iterator[Event]:
        for offset, key, value in batch.records():
            if key is None or value is None or _CONTROL_KEY.unpack_from(key)[1] != _LEADER_CHANGE:
                continue
            leader = _LEADER.unpack_from(value)[1]
            changes = [
                Change(_CONTROLLER, {"brokerid": leader}, {"controller_id": leader}),
                Change("/controller_epoch", batch.epoch, {"controller_epoch": batch.epoch}),
            ]
            if _CONTROLLER in self._existing:
                changes.insert(0, Change(_CONTROLLER, None, {}))
            yield from self._written(batch, offset, changes)

    def _complete(
        self, records: list[tuple[int, MetadataRecord]]
    ) -> Iterator[list[tuple[int, MetadataRecord]]]:
        """Yield the records that are in force now, as they were written together."""
        group: list[tuple[int, MetadataRecord]] = []
        for offset, record in records:
            if record.name == names.BEGIN_TRANSACTION:
                self._transaction = []
            elif record.name == names.ABORT_TRANSACTION:
                self._transaction = None
            elif record.name == names.END_TRANSACTION:
                group += self._transaction or []
                self._transaction = None
            elif self._transaction is not None:
                self._transaction.append((offset, record))
            else:
                group.append((offset, record))
        if group:
            yield group

    def _changes(
        self, batch: QuorumBatch, record: MetadataRecord, later: list[MetadataRecord]
    ) -> list[Change]:
        """Return what the record changes; ``later`` are the records that were written together with it."""
        values = record.values
        match record.name:
            case names.TOPIC:
                return self._new_topic(Topic(values["Name"], values["TopicId"]), later)
            case names.PARTITION:
                return self._new_partition(batch, PartitionState({**values}))
            case names.PARTITION_CHANGE:
                return self._changed_partition(batch, record)
            case names.CLEAR_ELR:
                return self._without_elr(batch, values["TopicName"])
            case names.REMOVE_TOPIC:
                return self._removed_topic(values["TopicId"])
            case names.CONFIG:
                return self._configured(values)
            case _:
                return self._of_a_broker(record)

    def _new_topic(self, topic: Topic, later: list[MetadataRecord]) -> list[Change]:
        """Return the topic's znode with the partitions that were created together with it."""
        self._topics[topic.topic_id] = topic
        assigned = {
            other.values["PartitionId"]: dict(other.values)
            for other in later
            if other.name == names.PARTITION and other.values["TopicId"] == topic.topic_id
        }
        topic.announced = set(assigned)
        return [topic.znode(assigned)]

    def _new_partition(self, batch: QuorumBatch, state: PartitionState) -> list[Change]:
        topic, number = self._topics[state.values["TopicId"]], state.values["PartitionId"]
        topic.partitions[number] = state
        state_change = _state(topic, number, batch)
        if number in topic.announced:
            return [state_change]
        topic.announced.add(number)
        return [topic.znode(topic.assigned()), state_change]

    def _changed_partition(self, batch: QuorumBatch, record: MetadataRecord) -> list[Change]:
        topic, number = self._topics[record.values["TopicId"]], record.values["PartitionId"]
        topic.partitions[number] = topic.partitions[number].changed_by(record)
        columns = ("Replicas", "RemovingReplicas", "AddingReplicas")
        is_moved = any(record.values[name] is not None for name in columns)
        return [
            *([topic.znode(topic.assigned())] if is_moved else []),
            _state(topic, number, batch),
        ]

    def _without_elr(self, batch: QuorumBatch, name: str) -> list[Change]:
        """Return the states that lose their eligible leader replicas; without a name all do."""
        changes = []
        for topic in self._topics.values():
            for number, state in topic.partitions.items():
                if name in ("", topic.name) and any(state.values[column] for column in _ELR):
                    cleared = {**state.values, **{column: [] for column in _ELR}}
                    topic.partitions[number] = PartitionState(cleared)
                    changes.append(_state(topic, number, batch))
        return changes

    def _removed_topic(self, topic_id: UUID) -> list[Change]:
        topic = self._topics.pop(topic_id)
        config = f"/config/topics/{topic.name}"
        states = [
            Change(topic.state_path(number), None, {**topic.columns, "partition": number})
            for number in sorted(topic.partitions)
        ]
        self._configs.pop(config, None)
        configs = [Change(config, None, {})] if config in self._existing else []
        return [*states, *configs, Change(f"{_TOPICS}{topic.name}", None, topic.columns)]

    def _configured(self, values: Mapping[str, Any]) -> list[Change]:
        kind = {_TOPIC_CONFIG: "topics", _BROKER_CONFIG: "brokers"}.get(values["ResourceType"])
        if kind is None:
            return []
        path = f"/config/{kind}/{values['ResourceName'] or '<default>'}"
        settings = self._configs.setdefault(path, {})
        if values["Value"] is None:
            settings.pop(values["Name"], None)
        else:
            settings[values["Name"]] = values["Value"]
        return [Change(path, {"version": 1, "config": dict(settings)}, {})]

    def _of_a_broker(self, record: MetadataRecord) -> list[Change]:
        """Return what becomes of a broker's registration, as far as others may count on the broker."""
        values = record.values
        match record.name:
            case names.REGISTER_BROKER:
                broker = values["BrokerId"]
                self._epochs[broker] = values["BrokerEpoch"]
                gone = self._unregistered(broker)
                return gone if values["Fenced"] else [*gone, self._registered(broker)]
            case names.UNREGISTER_BROKER:
                self._epochs.pop(values["BrokerId"], None)
                return self._unregistered(values["BrokerId"])
            case names.REGISTRATION_CHANGE:
                return self._fenced_or_not(values["BrokerId"], values["Fenced"])
            case names.FENCE_BROKER:
                return self._fenced_or_not(values["Id"], _FENCED)
            case names.UNFENCE_BROKER:
                return self._fenced_or_not(values["Id"], _UNFENCED)
        return []

    def _fenced_or_not(self, broker: int, change: int) -> list[Change]:
        if change == _FENCED:
            return self._unregistered(broker)
        is_registered = f"{_BROKERS}{broker}" in self._existing
        return [self._registered(broker)] if change == _UNFENCED and not is_registered else []

    def _registered(self, broker: int) -> Change:
        epoch = self._epochs.get(broker)
        columns = {"node": broker, "broker_epoch": epoch}
        return Change(f"{_BROKERS}{broker}", {"broker_epoch": epoch}, columns)

    def _unregistered(self, broker: int) -> list[Change]:
        path = f"{_BROKERS}{broker}"
        return [Change(path, None, {"node": broker})] if path in self._existing else []

    def _written(
        self, batch: QuorumBatch, offset: int, changes: Iterable[Change]
    ) -> Iterator[Event]:
        for seq, change in enumerate(changes):
            written = self._existing.get(change.path)
            if change.data is None:
                operation = "delete"
                self._existing.pop(change.path, None)
            else:
                operation = "create" if written is None else "setData"
                self._existing[change.path] = 0 if written is None else written + 1
            yield Event(
                time=NO_TIME,
                process=PROCESS,
                kind=Kind.ZNODE.value,
                seq=seq,
                zxid=offset,
                session=0,
                wall_ms=batch.wall_ms,
                zk_op=operation,
                path=change.path,
                data=None if change.data is None else msgspec.json.encode(change.data).decode(),
                zk_version=self._existing.get(change.path),
                ephemeral=change.path == _CONTROLLER or change.path.startswith(_BROKERS),
                **change.columns,
            )


def _state(topic: Topic, number: int, batch: QuorumBatch) -> Change:
    """Return the partition's state znode as it is after a record of this batch."""
    data = topic.partitions[number].data(batch.epoch)
    columns = {
        **topic.columns,
        "partition": number,
        **{name: data[name] for name in ("leader", "leader_epoch", "controller_epoch", "isr")},
    }
    return Change(topic.state_path(number), data, columns)


def _listed(assigned: Mapping[int, Mapping[str, Any]], column: str) -> dict[str, list[int]]:
    """Return partition → brokers, without partitions that have none."""
    return {str(number): values[column] for number, values in assigned.items() if values[column]}
