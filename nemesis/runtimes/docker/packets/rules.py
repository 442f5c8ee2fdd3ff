"""From what is in force on the links to the rules of one namespace. Pure functions.

A link from a to b is ruled in b's namespace, where packets come in; when b is no container (a client on this machine),
in a's, where they go out. Each link has its rules in this order, and each rule a comment ``nemesis:a>b:role``:

* ``held``       drops everything: the link is cut
* ``lost``       drops some packets at random
* ``forwarded``  does nothing; its counter says what has come through
* ``queued``     sends to the packet handler, whose verdict is final

A link that is narrowed to a Kafka API key has ``nemesis:a>b/1:held`` or ``:forwarded`` between ``held`` and ``lost``.
Such a rule looks at the first bytes of a segment's payload: a plausible frame length, the key, a plausible API version.
A request that does not begin its segment is not seen; clients that wait for one reply before they ask again have none
of those.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from nemesis.interfaces.impairment import Impairment
from nemesis.interfaces.links import Link
from nemesis.runtimes.docker.packets.netlink import MARK
from nemesis.runtimes.docker.packets.shaping import MAX_API_VERSION, MAX_FRAME_BYTES, Shape
from nemesis.targets.base import CONTROL_PLANE_PORT_OFFSET

PREFIX = "nemesis:"
MAX_NODES = 2**15


class Chain(StrEnum):
    """Our chains, one for each direction."""

    IN = "NEMESIS-IN"
    OUT = "NEMESIS-OUT"

    @property
    def hook(self) -> str:
        """The built-in chain that it is called from."""
        return "INPUT" if self is Chain.IN else "OUTPUT"


class Role(StrEnum):
    """What a rule is for."""

    HELD = "held"
    LOST = "lost"
    FORWARDED = "forwarded"
    QUEUED = "queued"


@dataclass(frozen=True, slots=True)
class PacketNode:
    """Where a node is. ``port``: where a broker listens; the rules for API keys need it.

    A broker listens to its controller, or as a controller, at the next port.
    """

    host: str
    is_container: bool
    port: int | None = None


@dataclass(frozen=True, slots=True)
class Count:
    """A rule's counter."""

    packets: int = 0
    bytes: int = 0

    def __add__(self, other: Count) -> Count:
        return Count(self.packets + other.packets, self.bytes + other.bytes)


Counts = Mapping[tuple[Link, Role], Count]


@dataclass(slots=True)
class InForce:
    """What happens to the links at the moment; those not named are free."""

    cut: set[Link] = field(default_factory=set)
    keys: set[Link] = field(default_factory=set)
    """The links with an API key that were ever cut: what they forward is counted since."""
    delays_ms: dict[Link, int] = field(default_factory=dict)
    impairments: dict[Link, Impairment] = field(default_factory=dict)
    is_key_matched: bool = True
    """Whether the kernel can look for API keys; otherwise the packet handler does."""
    is_handled: bool = True
    """Whether there is a packet handler; without one nothing may be sent to it."""

    def shape(self, link: Link) -> Shape | None:
        """Return what the packet handler is to do on a whole link, None when nothing."""
        bad = self.impairments.get(link, Impairment())
        keys = () if self.is_key_matched else tuple(sorted(self.narrowed(link)))
        shape = Shape(
            delay_ms=bad.delay_ms + self.delays_ms.get(link, 0),
            jitter_ms=bad.jitter_ms,
            duplication=bad.duplication,
            reordering=bad.reordering,
            hold_ms=bad.hold_ms if bad.reordering else 0,
            keys=keys,
            dropped_keys=tuple(key for key in keys if replace(link, api_key=key) in self.cut),
        )
        return shape if shape != Shape() else None

    def narrowed(self, link: Link) -> dict[int, Link]:
        """Return by API key the links between the same nodes that were ever cut for it."""
        return {
            narrow.api_key: narrow
            for narrow in self.keys
            if narrow.api_key is not None and replace(narrow, api_key=None) == link
        }


def node_and_chain_of(link: Link, nodes: Mapping[str, PacketNode]) -> tuple[str, Chain]:
    """Return the node in whose namespace the link is ruled, and the chain; raises ValueError when there is none."""
    if nodes[link.target].is_container:
        return link.target, Chain.IN
    if nodes[link.source].is_container:
        return link.source, Chain.OUT
    raise ValueError(f"neither {link.source} nor {link.target} is a container")


def links_at(node: str, nodes: Mapping[str, PacketNode]) -> list[tuple[Link, Chain]]:
    """Return every whole link that is ruled in this node's namespace, in the order of the rules."""
    others = [other for other in nodes if other != node]
    came = [(Link(other, node), Chain.IN) for other in others]
    gone = [(Link(node, other), Chain.OUT) for other in others if not nodes[other].is_container]
    return came + gone


def queue_of(link: Link, nodes: Mapping[str, PacketNode]) -> int:
    """Return the number of the link's queue in the namespace where it is ruled."""
    _, chain = node_and_chain_of(link, nodes)
    numbers = {node: number for number, node in enumerate(nodes)}
    return numbers[link.source] if chain is Chain.IN else MAX_NODES + numbers[link.target]


def rules_at(node: str, nodes: Mapping[str, PacketNode], in_force: InForce) -> list[str]:
    """Return all rules of one namespace, each as ``iptables-restore`` reads it."""
    rules = [f"-A {chain} -m mark --mark {MARK:#x} -j RETURN" for chain in Chain]
    for link, chain in _ruled_at(node, nodes, in_force):
        rules += [f"-A {chain} {rule}" for rule in _rules_of(link, nodes, in_force)]
    return rules


def queues_at(node: str, nodes: Mapping[str, PacketNode], in_force: InForce) -> dict[int, Shape]:
    """Return what the packet handler is to do in this namespace, by queue."""
    return {
        queue_of(link, nodes): replace(shape, is_resent=chain is Chain.OUT)
        for link, chain in _ruled_at(node, nodes, in_force)
        if (shape := in_force.shape(link)) is not None
    }


def _ruled_at(
    node: str, nodes: Mapping[str, PacketNode], in_force: InForce
) -> list[tuple[Link, Chain]]:
    """Return the links with rules in this namespace: that to the node itself, too, if requests on it were ever held.

    A KRaft node sends requests to its own controller.
    """
    own = Link(node, node)
    is_held = nodes[node].is_container and bool(in_force.narrowed(own))
    return [*links_at(node, nodes), *([(own, Chain.IN)] if is_held else [])]


_COUNTED = re.compile(
    rf'\[(\d+):(\d+)\] -A .*--comment "?{PREFIX}([^ ">/]+)>([^ ">/:]+)(?:/(\d+))?:([a-z]+)"?'
)


def counts(saved: Iterable[str]) -> dict[tuple[Link, Role], Count]:
    """Return what each rule of ours has counted, from the lines of ``iptables-save -c``."""
    collected: dict[tuple[Link, Role], Count] = {}
    for line in saved:
        if match := _COUNTED.match(line):
            packets, size, source, target, key, role = match.groups()
            link = Link(source, target, None if key is None else int(key))
            collected[link, Role(role)] = Count(int(packets), int(size))
    return collected


def _rules_of(link: Link, nodes: Mapping[str, PacketNode], in_force: InForce) -> list[str]:
    _, chain = node_and_chain_of(link, nodes)
    other = link.source if chain is Chain.IN else link.target
    option = "-s" if chain is Chain.IN else "-d"
    match = f"{option} {nodes[other].host}"
    rules = []
    if link in in_force.cut:
        rules.append(_rule(match, link, Role.HELD, "-j DROP"))
    if in_force.is_key_matched:
        rules += _key_rules(link, match, nodes[link.target].port, in_force)
    if loss := in_force.impairments.get(link, Impairment()).loss:
        chance = f"{match} -m statistic --mode random --probability {loss:.9f}"
        rules.append(_rule(chance, link, Role.LOST, "-j DROP"))
    rules.append(_rule(match, link, Role.FORWARDED, ""))
    if in_force.is_handled and in_force.shape(link) is not None:
        queue = f"-j NFQUEUE --queue-num {queue_of(link, nodes)}"
        rules.append(_rule(match, link, Role.QUEUED, queue))
    return rules


def _key_rules(link: Link, match: str, port: int | None, in_force: InForce) -> list[str]:
    if port is None:
        return []
    rules = []
    ports = f"{port}:{port + CONTROL_PLANE_PORT_OFFSET}"
    for key, narrow in sorted(in_force.narrowed(link).items()):
        frame = f"{match} -p tcp --dport {ports} -m u32 --u32 {api_key_match(key)}"
        if narrow in in_force.cut:
            rules.append(_rule(frame, narrow, Role.HELD, "-j DROP"))
        else:
            rules.append(_rule(frame, narrow, Role.FORWARDED, ""))
    return rules


def api_key_match(key: int) -> str:
    """Return the ``u32`` test for a segment whose payload begins with a request of this key.

    Three hops (the IP header's length, the TCP header's, the payload), then: a frame length, and key with version.
    """
    payload = "0>>22&0x3C@12>>26&0x3C@"
    newest = (key << 16) + MAX_API_VERSION
    return f'"{payload}0=0:{MAX_FRAME_BYTES - 1:#x}&&{payload}4={key << 16:#x}:{newest:#x}"'


def _rule(match: str, link: Link, role: Role, action: str) -> str:
    key = "" if link.api_key is None else f"/{link.api_key}"
    comment = f'-m comment --comment "{PREFIX}{link.source}>{link.target}{key}:{role}"'
    return f"{match} {comment} {action}".rstrip()
