"""Rules as text: where each link is ruled, in which order, and what their counters say."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nemesis.interfaces.impairment import Impairment
from nemesis.interfaces.links import Link
from nemesis.runtimes.docker.packets import rules
from nemesis.runtimes.docker.packets.rules import Chain, Count, InForce, PacketNode, Role
from nemesis.runtimes.docker.packets.shaping import Shape

NODES = {
    "broker-1": PacketNode("10.1.0.21", is_container=True, port=9092),
    "broker-2": PacketNode("10.1.0.22", is_container=True, port=9092),
    "client-1": PacketNode("10.1.0.101", is_container=False),
    "client-2": PacketNode("10.1.0.102", is_container=False),
}
TO_2 = Link("broker-1", "broker-2")
TO_CLIENT = Link("broker-1", "client-1")
FETCH = Link("broker-1", "broker-2", 1)


def of_link(node: str, link: Link, in_force: InForce) -> list[str]:
    """The rules whose comment names the link, narrowed or not."""
    name = f'"nemesis:{link.source}>{link.target}'
    return [line for line in rules.rules_at(node, NODES, in_force) if name in line]


def test_a_link_is_ruled_where_its_packets_come_in_or_where_they_leave_for_a_client() -> None:
    assert rules.node_and_chain_of(TO_2, NODES) == ("broker-2", Chain.IN)
    assert rules.node_and_chain_of(Link("client-1", "broker-2"), NODES) == ("broker-2", Chain.IN)
    assert rules.node_and_chain_of(TO_CLIENT, NODES) == ("broker-1", Chain.OUT)
    with pytest.raises(ValueError, match="neither client-1 nor client-2 is a container"):
        rules.node_and_chain_of(Link("client-1", "client-2"), NODES)


def test_without_faults_every_link_is_only_counted() -> None:
    lines = rules.rules_at("broker-2", NODES, InForce())
    own_packets, counters = lines[:2], lines[2:]
    assert all(line.endswith("-m mark --mark 0x4e454d -j RETURN") for line in own_packets)
    assert [line for line in counters if " -j " in line] == []
    assert len(counters) == 3 + 2


def test_a_cut_drops_what_comes_from_the_sender_and_nothing_else() -> None:
    in_force = InForce(cut={TO_2})
    dropped = [line for line in rules.rules_at("broker-2", NODES, in_force) if "-j DROP" in line]
    assert dropped == [
        '-A NEMESIS-IN -s 10.1.0.21 -m comment --comment "nemesis:broker-1>broker-2:held" -j DROP'
    ]
    assert not [line for line in rules.rules_at("broker-1", NODES, in_force) if "DROP" in line]


def test_a_cut_towards_a_client_drops_what_leaves_for_it() -> None:
    held, _ = of_link("broker-1", TO_CLIENT, InForce(cut={TO_CLIENT}))
    assert held.startswith("-A NEMESIS-OUT -d 10.1.0.101 ")
    assert held.endswith("-j DROP")


def test_a_packet_meets_cut_loss_counter_and_handler_in_this_order() -> None:
    in_force = InForce(
        cut={TO_2, FETCH},
        keys={FETCH},
        impairments={TO_2: Impairment(loss=0.25)},
        delays_ms={TO_2: 10},
    )
    lines = of_link("broker-2", TO_2, in_force)
    assert [line.split('"nemesis:')[1].split('"')[0] for line in lines] == [
        "broker-1>broker-2:held",
        "broker-1>broker-2/1:held",
        "broker-1>broker-2:lost",
        "broker-1>broker-2:forwarded",
        "broker-1>broker-2:queued",
    ]
    assert "--probability 0.250000000" in lines[2]
    assert lines[4].endswith("-j NFQUEUE --queue-num 0")


def test_requests_of_a_key_are_told_by_the_start_of_the_payload() -> None:
    _, fetch, _ = ["", *of_link("broker-2", TO_2, InForce(cut={FETCH}, keys={FETCH}))]
    assert (
        '-p tcp --dport 9092:9093 -m u32 --u32 "0>>22&0x3C@12>>26&0x3C@0=0:0xffffff'
        '&&0>>22&0x3C@12>>26&0x3C@4=0x10000:0x10020"' in fetch
    )


def test_requests_of_a_node_to_itself_have_rules_once_they_were_held() -> None:
    own = Link("broker-2", "broker-2", api_key=63)
    assert not of_link("broker-2", replace(own, api_key=None), InForce(cut={FETCH}, keys={FETCH}))
    held, all_bytes = of_link(
        "broker-2", replace(own, api_key=None), InForce(cut={own}, keys={own})
    )
    assert held.startswith("-A NEMESIS-IN -s 10.1.0.22 -p tcp --dport 9092:9093 ")
    assert '"nemesis:broker-2>broker-2/63:held"' in held
    assert " -j " not in all_bytes


def test_after_a_cut_of_a_key_its_requests_are_counted_on() -> None:
    fetch, whole = of_link("broker-2", TO_2, InForce(keys={FETCH}))
    assert '"nemesis:broker-1>broker-2/1:forwarded"' in fetch
    assert " -j " not in fetch + whole


def test_a_kernel_without_such_rules_leaves_keys_to_the_handler() -> None:
    in_force = InForce(cut={FETCH}, keys={FETCH}, is_key_matched=False)
    assert rules.queues_at("broker-2", NODES, in_force) == {0: Shape(keys=(1,), dropped_keys=(1,))}
    in_force.cut.clear()
    assert rules.queues_at("broker-2", NODES, in_force) == {0: Shape(keys=(1,))}
    assert not [line for line in rules.rules_at("broker-2", NODES, in_force) if "u32" in line]


def test_delays_of_both_kinds_add_up_and_packets_for_clients_are_sent_anew() -> None:
    bad = Impairment(delay_ms=20, jitter_ms=5)
    in_force = InForce(delays_ms={TO_CLIENT: 30, TO_2: 1}, impairments={TO_CLIENT: bad})
    shapes = rules.queues_at("broker-1", NODES, in_force)
    assert shapes == {
        rules.queue_of(TO_CLIENT, NODES): Shape(delay_ms=50, jitter_ms=5, is_resent=True)
    }


def test_every_link_in_a_namespace_has_a_queue_of_its_own() -> None:
    for node in ("broker-1", "broker-2"):
        queues = [rules.queue_of(link, NODES) for link, _ in rules.links_at(node, NODES)]
        assert len(set(queues)) == len(queues) == 5
        assert all(0 <= queue < 2**16 for queue in queues)


def test_loss_needs_no_handler_and_without_one_nothing_is_sent_to_it() -> None:
    lossy = InForce(impairments={TO_2: Impairment(loss=0.5)})
    assert rules.queues_at("broker-2", NODES, lossy) == {}
    slow = InForce(delays_ms={TO_2: 10}, is_handled=False)
    assert "NFQUEUE" not in "".join(rules.rules_at("broker-2", NODES, slow))


def test_counters_are_read_by_the_names_in_the_comments() -> None:
    saved = [
        "*filter",
        ":NEMESIS-IN - [0:0]",
        "[9:999] -A INPUT -j NEMESIS-IN",
        '[3:180] -A NEMESIS-IN -s 10.1.0.21/32 -m comment --comment "nemesis:broker-1>broker-2:held" -j DROP',
        '[4:400] -A NEMESIS-IN -m u32 --u32 "0x0" -m comment --comment "nemesis:broker-1>broker-2/1:forwarded"',
        '[7:700] -A INPUT -m comment --comment "of somebody else" -j ACCEPT',
    ]
    assert rules.counts(saved) == {
        (TO_2, Role.HELD): Count(3, 180),
        (FETCH, Role.FORWARDED): Count(4, 400),
    }
