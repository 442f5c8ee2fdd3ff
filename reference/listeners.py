"""Which listeners a broker has, and what each is for: Kafka's five properties that name listeners, read together.

``listeners`` and ``advertised.listeners`` are lists such as ``PLAINTEXT://10.0.0.1:9092,CONTROLLER://10.0.0.1:9093``;
``listener.security.protocol.map`` gives each name its protocol, of which there is only PLAINTEXT here. Other brokers
come by ``inter.broker.listener.name``, the controller by ``control.plane.listener.name`` if that is set.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from nemesis.reference.model import PLAINTEXT, EndPoint

MAX_PORT = 65_535
ANY_HOST = ("", "0.0.0.0", "::")
"""Hosts that one can listen at but not connect to, or connect from."""


class ListenerError(ValueError):
    """The properties contradict each other, or one cannot be read; the sentence names key and value."""


@dataclass(frozen=True, slots=True)
class ListenerConfig:
    """The listeners of one broker, in the order in which they were given."""

    end_points: tuple[EndPoint, ...]
    advertised: tuple[EndPoint, ...]
    inter_broker_listener_name: str
    control_plane_listener_name: str | None

    @property
    def control_plane_end_point(self) -> EndPoint | None:
        """The listener of the controller alone; None when it comes by the others."""
        for end_point in self.end_points:
            if end_point.listener_name == self.control_plane_listener_name:
                return end_point
        return None

    @property
    def data_plane_end_points(self) -> tuple[EndPoint, ...]:
        return tuple(
            end_point
            for end_point in self.end_points
            if end_point.listener_name != self.control_plane_listener_name
        )

    @property
    def to_controller_listener_name(self) -> str:
        """By which the controller is asked, and asks others."""
        return self.control_plane_listener_name or self.inter_broker_listener_name

    @property
    def source_host(self) -> str | None:
        """What outgoing connections bind: the host of the inter-broker listener, unless that is any host."""
        for end_point in self.end_points:
            if end_point.listener_name == self.inter_broker_listener_name:
                return None if end_point.host in ANY_HOST else end_point.host
        return None


@lru_cache
def listener_config(
    *,
    listeners: str,
    advertised_listeners: str | None,
    security_protocol_map: str,
    inter_broker_listener_name: str | None,
    control_plane_listener_name: str | None,
) -> ListenerConfig:
    """Read the five properties together; raises ``ListenerError``."""
    protocols = key_value_pairs("listener.security.protocol.map", security_protocol_map)
    end_points = _end_points("listeners", listeners, protocols)
    advertised = end_points
    if advertised_listeners is not None:
        advertised = _end_points("advertised.listeners", advertised_listeners, protocols)
    inter_broker = inter_broker_listener_name or PLAINTEXT
    config = ListenerConfig(end_points, advertised, inter_broker, control_plane_listener_name)
    _check_names(config)
    return config


def key_value_pairs(key: str, value: str) -> dict[str, str]:
    """Read ``a:1,b:2``, a Kafka map; raises ``ListenerError`` naming the property's key."""
    pairs: dict[str, str] = {}
    for item in filter(None, map(str.strip, value.split(","))):
        name, colon, meaning = item.rpartition(":")
        if not (colon and name and meaning):
            raise ListenerError(f"{key} has {item!r}, which is not of the form NAME:VALUE")
        if name.strip() in pairs:
            raise ListenerError(f"{key} names {name.strip()!r} twice")
        pairs[name.strip()] = meaning.strip()
    return pairs


def _end_points(key: str, value: str, protocols: Mapping[str, str]) -> tuple[EndPoint, ...]:
    end_points = tuple(_end_point(key, item.strip()) for item in value.split(",") if item.strip())
    if not end_points:
        raise ListenerError(f"{key} is empty")
    names = [end_point.listener_name for end_point in end_points]
    addresses = [
        (end_point.host, end_point.port) for end_point in end_points if end_point.port != 0
    ]
    for name in names:
        if names.count(name) > 1:
            raise ListenerError(f"{key} is {value!r}: it names the listener {name} twice")
        if name not in protocols:
            raise ListenerError(
                f"{key} names the listener {name}, for which listener.security.protocol.map has no protocol"
            )
        if protocols[name] != PLAINTEXT:
            raise ListenerError(
                f"the listener {name} of {key} has the security protocol {protocols[name]}: there is only {PLAINTEXT}"
            )
    if len(set(addresses)) < len(addresses):
        raise ListenerError(f"{key} is {value!r}: each listener needs a port of its own")
    return end_points


def _end_point(key: str, item: str) -> EndPoint:
    name, separator, address = item.partition("://")
    host, colon, port = address.rpartition(":")
    if (
        not (name and separator and colon and port.isascii() and port.isdecimal())
        or int(port) > MAX_PORT
    ):
        raise ListenerError(f"{key} has {item!r}, which is not of the form NAME://HOST:PORT")
    return EndPoint(host.strip("[]"), int(port), name.upper())


def _check_names(config: ListenerConfig) -> None:
    names = [end_point.listener_name for end_point in config.end_points]
    advertised = [end_point.listener_name for end_point in config.advertised]
    for end_point in config.advertised:
        if end_point.listener_name not in names:
            raise ListenerError(
                f"advertised.listeners names the listener {end_point.listener_name}, which listeners does not have"
            )
        if end_point.host in ANY_HOST:
            raise ListenerError(
                f"advertised.listeners (or listeners, if it is not set) has {end_point}: no client can connect there"
            )
    inter_broker = config.inter_broker_listener_name
    if inter_broker not in advertised:
        raise ListenerError(
            f"inter.broker.listener.name is {inter_broker!r}, which is none of the advertised listeners "
            f"{', '.join(advertised)}"
        )
    control_plane = config.control_plane_listener_name
    if control_plane is None:
        return
    if control_plane not in advertised:
        raise ListenerError(
            f"control.plane.listener.name is {control_plane!r}, which is none of the advertised listeners "
            f"{', '.join(advertised)}"
        )
    if control_plane == inter_broker:
        raise ListenerError(
            f"control.plane.listener.name and inter.broker.listener.name are both {control_plane!r}: "
            "it needs its own"
        )
