"""The reader against logs that a real ZooKeeper wrote."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import BadVersionError, NodeExistsError, RolledBackError, RuntimeInconsistency

from nemesis.history.events import Event
from nemesis.history.znodes import ZnodeEvents
from nemesis.history.zookeeper_log import read_log
from tests.history.zookeeper_server import zookeeper_server

STATE = "/brokers/topics/orders/partitions/0/state"
DYING = """
import sys
from kazoo.client import KazooClient
client = KazooClient(sys.argv[1], timeout=1)
client.start()
client.create("/brokers/ids/2", b"{}", ephemeral=True)
client.create("/brokers/ids/3", b"{}", ephemeral=True)
print("created", flush=True)
sys.stdin.read()
import time; time.sleep(60)
"""
"""A process that dies with its session open, so that the server expires it."""


@pytest.fixture(scope="module")
def log_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("zookeeper")
    with zookeeper_server(directory) as hosts:
        client = KazooClient(hosts, timeout=10)
        client.start()
        client.ensure_path("/brokers/ids")
        client.ensure_path("/brokers/topics")
        client.create("/controller_epoch", b"1")
        client.set("/controller_epoch", b"2")
        client.create(
            "/brokers/topics/orders",
            b'{"version":3,"topic_id":"AAAAAAAAAAAAAAAAAAAAAQ","partitions":{}}',
        )
        client.ensure_path("/brokers/topics/orders/partitions/0")
        state = b'{"controller_epoch":2,"leader":1,"version":1,"leader_epoch":0,"isr":[1,2]}'
        fenced = client.transaction()
        fenced.check("/controller_epoch", 1)
        fenced.create("/brokers/topics/orders/partitions/0/state", state)
        assert not any(isinstance(answer, Exception) for answer in fenced.commit())
        zombie = client.transaction()
        zombie.check("/controller_epoch", 0)
        zombie.set_data("/brokers/topics/orders/partitions/0/state", b"{}")
        first, second = zombie.commit()
        assert isinstance(first, BadVersionError)
        assert isinstance(second, RuntimeInconsistency)
        lost = client.transaction()
        lost.check("/controller_epoch", 1)
        lost.set_data("/brokers/topics/orders/partitions/0/state", b"{}", version=7)
        first, second = lost.commit()
        assert isinstance(first, RolledBackError)
        assert isinstance(second, BadVersionError)
        with pytest.raises(NodeExistsError):
            client.create("/controller_epoch", b"9")
        client.delete("/brokers/topics/orders/partitions/0/state")
        for path in ("orders/partitions/0", "orders/partitions", "orders"):
            client.delete(f"/brokers/topics/{path}")

        leaving = KazooClient(hosts, timeout=10)
        leaving.start()
        leaving.create("/controller", b'{"version":1,"brokerid":3}', ephemeral=True)
        leaving.stop()
        leaving.close()

        dying = subprocess.Popen([sys.executable, "-c", DYING, hosts], stdout=subprocess.PIPE)
        assert dying.stdout is not None
        assert dying.stdout.readline() == b"created\n"
        dying.kill()
        dying.communicate()
        deadline = time.monotonic() + 20
        while client.exists("/brokers/ids/2"):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        client.stop()
        client.close()
    return directory / "version-2"


def test_every_change_is_read_in_zxid_order(log_directory: Path) -> None:
    contents = read_log(log_directory)
    assert contents.problems == []
    zxids = [entry.zxid for entry in contents.transactions]
    assert zxids == list(range(1, len(zxids) + 1))


@pytest.fixture(scope="module")
def events(log_directory: Path) -> list[Event]:
    return list(ZnodeEvents().events(read_log(log_directory).transactions))


def on(events: list[Event], path: str) -> list[Event]:
    return [event for event in events if event.path == path]


def test_known_znodes_are_parsed(events: list[Event]) -> None:
    created, written = on(events, "/controller_epoch")[:2]
    assert (created.zk_op, created.controller_epoch, created.zk_version) == ("create", 1, 0)
    assert (written.zk_op, written.controller_epoch, written.zk_version) == ("setData", 2, 1)
    state, deleted = on(events, STATE)
    assert (state.topic, state.topic_id, state.partition) == (
        "orders",
        "00000000-0000-0000-0000-000000000001",
        0,
    )
    assert (state.leader, state.leader_epoch, state.isr, state.controller_epoch) == (
        1,
        0,
        [1, 2],
        2,
    )
    assert (deleted.kind, deleted.zk_op, deleted.topic_id) == (
        "znode",
        "delete",
        "00000000-0000-0000-0000-000000000001",
    )
    broker = on(events, "/brokers/ids/2")[0]
    assert (broker.node, broker.broker_epoch, broker.ephemeral) == (2, broker.zxid, True)


def test_a_check_that_held_shows_the_version_that_it_demanded(events: list[Event]) -> None:
    checks = [event for event in events if event.zk_op == "check"]
    assert [(event.kind, event.zk_version) for event in checks] == [
        ("znode", 1),
        ("znode-refused", 1),
    ]


def test_a_failed_multi_did_nothing_and_names_its_cause(events: list[Event]) -> None:
    refused = [(event.error, event.zk_op) for event in events if event.kind == "znode-refused"]
    assert refused == [
        ("BADVERSION", None),
        ("RUNTIMEINCONSISTENCY", None),
        ("BADVERSION", "check"),
        ("BADVERSION", None),
        ("NODEEXISTS", None),
    ]


def test_the_end_of_a_session_takes_its_ephemerals_along(events: list[Event]) -> None:
    ends = [event for event in events if event.kind == "session-closed"]
    assert [event.reason for event in ends] == ["closed", "expired", "closed"]
    gone = {
        event.path: event.seq
        for event in events
        if event.zxid == ends[1].zxid and event.kind == "znode" and event.zk_op == "delete"
    }
    assert set(gone) == {"/brokers/ids/2", "/brokers/ids/3"}
    assert set(gone.values()) == {1, 2}
    controller = on(events, "/controller")
    assert [(event.zk_op, event.controller_id) for event in controller] == [
        ("create", 3),
        ("delete", None),
    ]
    assert all(event.ephemeral for event in controller)


def test_a_torn_tail_costs_only_the_torn_record(log_directory: Path, tmp_path: Path) -> None:
    (path,) = log_directory.glob("log.*")
    whole = read_log(log_directory)
    used = len(path.read_bytes().rstrip(b"\0"))
    torn = tmp_path / path.name
    torn.write_bytes(path.read_bytes()[: used - 5] + bytes(5000))
    contents = read_log(tmp_path)
    assert contents.problems == []
    assert contents.transactions == whole.transactions[:-1]
