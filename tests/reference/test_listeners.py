"""Which listeners a configuration gives, and what it refuses, each with one sentence that names key and value."""

from __future__ import annotations

from typing import Any

import pytest

from nemesis.reference.kafka_config import ConfigError, KafkaConfig
from nemesis.reference.model import EndPoint

MAP = "PLAINTEXT:PLAINTEXT,IN:PLAINTEXT,OUT:PLAINTEXT,CONTROLLER:PLAINTEXT,SECRET:SSL"
THREE = "IN://10.0.0.1:1,OUT://:2,CONTROLLER://10.0.0.1:3"
THREE_ADVERTISED = "IN://10.0.0.1:1,OUT://example.org:12,CONTROLLER://10.0.0.1:3"


def config(**properties: Any) -> KafkaConfig:
    values: dict[str, Any] = {
        "listeners": "PLAINTEXT://10.0.0.1:9092",
        "listener.security.protocol.map": MAP,
        "zookeeper.connect": "unused",
        "log.dirs": ["unused"],
    }
    values |= {name.replace("_", "."): value for name, value in properties.items()}
    return KafkaConfig.from_properties(values)


def test_one_listener_is_for_everybody() -> None:
    listeners = config().listener_config
    assert listeners.end_points == listeners.advertised == (EndPoint("10.0.0.1", 9092),)
    assert listeners.data_plane_end_points == listeners.end_points
    assert listeners.control_plane_end_point is None
    assert listeners.to_controller_listener_name == "PLAINTEXT"
    assert listeners.source_host == "10.0.0.1"


def test_each_listener_is_for_what_it_is_named_for() -> None:
    listeners = config(
        listeners=THREE,
        advertised_listeners=THREE_ADVERTISED,
        inter_broker_listener_name="IN",
        control_plane_listener_name="CONTROLLER",
    ).listener_config
    assert [
        data_plane_end_point.listener_name
        for data_plane_end_point in listeners.data_plane_end_points
    ] == ["IN", "OUT"]
    assert listeners.control_plane_end_point == EndPoint("10.0.0.1", 3, "CONTROLLER")
    assert listeners.advertised[1] == EndPoint("example.org", 12, "OUT")
    assert listeners.to_controller_listener_name == "CONTROLLER"


def test_who_listens_on_all_hosts_leaves_from_any() -> None:
    listeners = "PLAINTEXT://0.0.0.0:1"
    assert config(listeners=listeners, advertised_listeners="PLAINTEXT://a:1").source_host is None


def test_an_address_of_version_6_stands_in_brackets() -> None:
    assert config(listeners="PLAINTEXT://[::1]:9").listener_config.end_points[0].host == "::1"


@pytest.mark.parametrize(
    ("properties", "sentence"),
    [
        ({"listeners": ""}, "listeners is empty"),
        (
            {"listeners": "10.0.0.1:9092"},
            "listeners has '10.0.0.1:9092', which is not of the form NAME://HOST:PORT",
        ),
        (
            {"listeners": "IN://a:70000"},
            "listeners has 'IN://a:70000', which is not of the form NAME://HOST:PORT",
        ),
        (
            {"listeners": "OTHER://a:1"},
            "listeners names the listener OTHER, for which listener.security.protocol.map has no protocol",
        ),
        (
            {"listeners": "SECRET://a:1"},
            "the listener SECRET of listeners has the security protocol SSL: there is only PLAINTEXT",
        ),
        (
            {"listeners": "IN://a:1,IN://a:2"},
            "listeners is 'IN://a:1,IN://a:2': it names the listener IN twice",
        ),
        (
            {"listeners": "IN://a:1,OUT://a:1"},
            "listeners is 'IN://a:1,OUT://a:1': each listener needs a port of its own",
        ),
        (
            {"advertised_listeners": "OUT://a:1"},
            "advertised.listeners names the listener OUT, which listeners does not have",
        ),
        (
            {"listeners": "PLAINTEXT://:9092"},
            "advertised.listeners (or listeners, if it is not set) has PLAINTEXT://:9092: no client can connect there",
        ),
        (
            {"inter_broker_listener_name": "IN"},
            "inter.broker.listener.name is 'IN', which is none of the advertised listeners PLAINTEXT",
        ),
        (
            {"listeners": "IN://a:1"},
            "inter.broker.listener.name is 'PLAINTEXT', which is none of the advertised listeners IN",
        ),
        (
            {"control_plane_listener_name": "CONTROLLER"},
            "control.plane.listener.name is 'CONTROLLER', which is none of the advertised listeners PLAINTEXT",
        ),
        (
            {"control_plane_listener_name": "PLAINTEXT"},
            "control.plane.listener.name and inter.broker.listener.name are both 'PLAINTEXT': it needs its own",
        ),
        (
            {"listener_security_protocol_map": "PLAINTEXT"},
            "listener.security.protocol.map has 'PLAINTEXT', which is not of the form NAME:VALUE",
        ),
        (
            {"listener_security_protocol_map": "A:PLAINTEXT,A:SSL"},
            "listener.security.protocol.map names 'A' twice",
        ),
        (
            {"queued_max_request_bytes": 99, "socket_request_max_bytes": 100},
            "queued.max.request.bytes is 99: it may be -1 or at least socket.request.max.bytes, which is 100",
        ),
        (
            {"max_connections_per_ip": 0},
            "max.connections.per.ip is 0 and max.connections.per.ip.overrides is empty: nobody could connect",
        ),
        (
            {"max_connections_per_ip_overrides": "10.0.0.1:many"},
            "max.connections.per.ip.overrides gives '10.0.0.1' the bound 'many', not a number",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused(properties: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError) as raised:
        config(**properties)
    assert str(raised.value) == f"broker configuration: {sentence}"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("num.network.threads", 0),
        ("num.network.threads", "3"),
        ("socket.listen.backlog.size", 0),
        ("socket.send.buffer.bytes", -2),
        ("max.connections", -1),
        ("connections.max.idle.ms", 1.5),
        ("host", "10.0.0.1"),
    ],
)
def test_a_value_of_the_wrong_kind_and_an_unknown_key_are_refused(key: str, value: object) -> None:
    with pytest.raises(ConfigError, match=key):
        config(**{key: value})
