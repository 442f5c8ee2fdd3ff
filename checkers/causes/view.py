"""What had happened up to a time, as the traces and ZooKeeper's log record it.

ZooKeeper's rows have no time. Those count whose zxid a broker had traced by then: they certainly had happened.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from nemesis.checkers import znodes
from nemesis.checkers.explain.words import duration
from nemesis.checkers.framework.event_list import Row
from nemesis.checkers.zxid_times import ZxidTimes
from nemesis.history.events import Event, Kind

NO_LEADER: Final = -1


@dataclass(frozen=True, slots=True)
class Registration:
    """The last znode of a broker under ``/brokers/ids``."""

    created: Row
    deleted: Row | None = None

    @property
    def epoch(self) -> int:
        """The broker epoch: the zxid that created the znode."""
        return self.created[1].zxid or 0


class View:
    """The events up to ``until_ns``, and the questions that causes ask of them. ``end`` says what came then."""

    def __init__(self, rows: Iterable[Row], until_ns: int, end: str) -> None:
        every = list(rows)
        self._end = end
        self.until_ns = until_ns
        self.timed: list[Row] = sorted(
            (item for item in every if 0 <= item[1].time <= until_ns),
            key=lambda item: (item[1].time, item[1].seq),
        )
        self._times = ZxidTimes(every)
        self._newest = max((event.zxid or 0 for _, event in self.timed), default=0)
        self._znodes = [row for row in every if self._is_known(row[1])]

    def _is_known(self, event: Event) -> bool:
        return event.time < 0 and (event.zxid or 0) <= self._newest

    # -- times

    def time_of(self, event: Event) -> int:
        """Return the time of an event; of ZooKeeper's when a broker first traced its zxid or a later one."""
        if event.time >= 0:
            return event.time
        known = self._times.known(event.zxid)
        return self.until_ns if known is None else known

    def ago(self, event: Event) -> str:
        """Return how long before the end of the view an event was."""
        return f"{duration(max(0, self.until_ns - self.time_of(event)))} before {self._end}"

    # -- events

    def events(self, *kinds: Kind, since_ns: int = 0, **columns: Any) -> list[Row]:
        """Return the timed events of these kinds whose columns have these values, from a time on."""
        return [
            (row, event)
            for row, event in self.timed
            if event.kind in kinds
            and event.time >= since_ns
            and all(getattr(event, name) == value for name, value in columns.items())
        ]

    def of_process(self, broker: int, *kinds: Kind, **columns: Any) -> list[Row]:
        """Return such events of the broker's last process."""
        incarnation = self.incarnation(broker)
        return self.events(*kinds, process=f"broker-{broker}", incarnation=incarnation, **columns)

    def incarnation(self, broker: int) -> int | None:
        """Return the incarnation of the broker's last process; None if it traced nothing."""
        process = f"broker-{broker}"
        known = (event.incarnation or 0 for _, event in self.timed if event.process == process)
        return max(known, default=None)

    def traces(self, broker: int) -> bool:
        """Return whether the broker records events; those of other systems do not."""
        return self.incarnation(broker) is not None

    def traces_controller(self) -> bool:
        """Return whether the controller of the newest controller epoch records events."""
        granted = [item[1].controller_epoch for item in self.changes(znodes.CONTROLLER_EPOCH)]
        elected = {event.controller_epoch for _, event in self.events(Kind.CONTROLLER_ELECTED)}
        return not granted or granted[-1] in elected

    # -- ZooKeeper

    def changes(self, path: str) -> list[Row]:
        """Return the committed changes of a znode, in ZooKeeper's order."""
        return [item for item in znodes.changes(self._znodes) if item[1].path == path]

    def state(self, topic: str, partition: int) -> znodes.StateChange | None:
        """Return the last write of a partition's state; None if none is recorded."""
        return next(iter(reversed(self._states(topic, partition))), None)

    def leader_epoch_begun(self, state: znodes.StateChange) -> znodes.StateChange:
        """Return the write that began the leader epoch of a state."""
        epoch = (state.event.leader, state.event.leader_epoch)
        begun = state
        for change in reversed(self._states(state.event.topic or "", state.event.partition or 0)):
            if (change.event.leader, change.event.leader_epoch) != epoch:
                break
            begun = change
        return begun

    def state_before(self, state: znodes.StateChange) -> znodes.StateChange | None:
        """Return the write before that of a state; None if it is the first."""
        states = self._states(state.event.topic or "", state.event.partition or 0)
        earlier = [
            change for change in states if (change.event.zxid or 0) < (state.event.zxid or 0)
        ]
        return earlier[-1] if earlier else None

    def _states(self, topic: str, partition: int) -> list[znodes.StateChange]:
        return [
            change
            for change in znodes.state_changes(self._znodes)
            if (change.event.topic, change.event.partition) == (topic, partition)
        ]

    def registration(self, broker: int) -> Registration | None:
        """Return the broker's last registration; None if ZooKeeper's log has none."""
        last: Registration | None = None
        for item in self.changes(f"{znodes.BROKER_IDS}{broker}"):
            if item[1].zk_op == "create":
                last = Registration(item)
            elif item[1].zk_op == "delete" and last is not None:
                last = Registration(last.created, item)
        return last

    def brokers(self) -> frozenset[int]:
        """Return the brokers that are registered."""
        known = {item[1].node for item in self.registration_changes()}
        return frozenset(
            broker for broker in known if broker is not None and self.is_registered(broker)
        )

    def is_registered(self, broker: int) -> bool:
        registration = self.registration(broker)
        return registration is not None and registration.deleted is None

    def registration_changes(self) -> Iterator[Row]:
        """Yield the changes of all registrations, in ZooKeeper's order."""
        for item in znodes.changes(self._znodes):
            if (item[1].path or "").startswith(znodes.BROKER_IDS):
                yield item

    def session_end(self, zxid: int | None) -> Row | None:
        """Return the end of the session with which a znode disappeared; None if an operation deleted it."""
        for row, event in self._znodes:
            if event.kind == Kind.SESSION_CLOSED and event.zxid == zxid:
                return row, event
        return None

    # -- the controller

    def controller(self) -> Event | None:
        """Return the ``controller-elected`` of the last controller; None if none is recorded."""
        elected = self.events(Kind.CONTROLLER_ELECTED)
        return elected[-1][1] if elected else None
