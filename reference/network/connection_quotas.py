"""How many connections a broker has, how many it may have, and how fast new ones may come.

Three bounds, as in ``kafka.network.ConnectionQuotas``:

* ``max.connections``: of the broker. At the bound a listener accepts no more until one closes. The listener of the
  other brokers, where there are several, is *protected*: it accepts beyond the bound, and another listener then
  closes the connection that was idle for longest.
* ``max.connections.per.ip`` with its overrides: of one client host. One too many is closed at once.
* ``max.connection.creation.rate``: per second. A listener waits before it accepts the next one; the protected one
  does not.
"""

from __future__ import annotations

from collections.abc import Callable

from nemesis.reference.kafka_config import KafkaConfig
from nemesis.reference.network.errors import TooManyConnectionsError
from nemesis.reference.network.rate import Rate


class ConnectionQuotas:
    """Counts the connections of all listeners. ``now`` is the event loop's time in seconds."""

    def __init__(self, config: KafkaConfig, *, now: Callable[[], float]) -> None:
        self._config = config
        self._now = now
        self._protected_listener = (
            config.listener_config.inter_broker_listener_name
            if len(config.listener_config.end_points) > 1
            else None
        )
        self._overrides = config.max_connections_per_ip_by_host
        self._of_hosts: dict[str, int] = {}
        self._creation = Rate()
        self._waiting: dict[Callable[[], None], None] = {}
        self._closers: list[Callable[[], None]] = []
        self.count = 0
        """Open connections of all listeners."""

    def protects(self, listener_name: str) -> bool:
        """Whether it is the listener that other brokers come by, and there is another."""
        return listener_name == self._protected_listener

    def has_slot(self, listener_name: str, wakeup: Callable[[], None]) -> bool:
        """Whether the listener may accept; if not, ``wakeup`` is called once when that may have changed."""
        if self.protects(listener_name) or self.count < self._config.max_connections:
            return True
        self._waiting[wakeup] = None
        return False

    def throttle_time_s(self, listener_name: str) -> float:
        """Count one more that is created; returns how long to wait with it, in seconds."""
        if self.protects(listener_name):
            return 0.0
        self._creation.record(1, self._now())
        return min(
            self._creation.throttle_time_s(self._config.max_connection_creation_rate, self._now()),
            MAX_THROTTLE_S,
        )

    def inc(self, host: str) -> None:
        """Count a connection of this host; raises ``TooManyConnectionsError`` (then it is not counted)."""
        bound = self._overrides.get(host, self._config.max_connections_per_ip)
        count = self._of_hosts.get(host, 0)
        if count >= bound:
            raise TooManyConnectionsError(f"{host} has {count} connections, its bound is {bound}")
        self._of_hosts[host] = count + 1
        self.count += 1
        if self.count > self._config.max_connections:
            for wakeup in self._closers:
                wakeup()

    def add_closer(self, wakeup: Callable[[], None]) -> None:
        """Have this called when there are too many connections and somebody has to close one."""
        self._closers.append(wakeup)

    def dec(self, host: str) -> None:
        """One of its connections has gone."""
        count = self._of_hosts.pop(host)
        if count > 1:
            self._of_hosts[host] = count - 1
        self.count -= 1
        waiting, self._waiting = self._waiting, {}
        for wakeup in waiting:
            wakeup()

    def max_connections_exceeded(self, listener_name: str) -> bool:
        """Whether this listener has to close a connection because a protected one went beyond the bound."""
        return self.count > self._config.max_connections and not self.protects(listener_name)


MAX_THROTTLE_S = 1.0
"""At most one window at a time, as in Kafka."""
