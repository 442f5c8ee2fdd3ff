"""The victim of a fault of client processes: symbolic names, resolved when the fault is aimed.

``client`` (one at random), ``group-leader("g")`` (the process whose member leads the newest generation of a group of
consumers), or a process by its name, such as ``member-3`` or ``producer-0``. Processes that have ended, and those that
another fault in force has touched, are not chosen.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from random import Random
from typing import Final

from nemesis.faults.base import FaultContext, SelectorUnresolved
from nemesis.interfaces.clients import ClientProcesses
from nemesis.registry import hint
from nemesis.support.errors import UsageError

CLIENT: Final = "client"
ALLOWED: Final = (
    'client, group-leader("g"), and client processes by name, such as producer-0 or member-3'
)
_GROUP = re.compile(r"""group-leader\(\s*["']([^"']+)["']\s*\)""")
_NAME = re.compile(r"(?!broker-|zookeeper-|controller-)[a-z]+(?:-[a-z]+)*-\d+")


@dataclass(frozen=True, slots=True)
class ClientSelector:
    """A parsed selector: a process by its name, the leader of a group, or any process."""

    name: str | None = None
    group: str | None = None


def parse(text: str) -> ClientSelector:
    """Return what the text names; raises ``UsageError`` naming the allowed forms."""
    if text == CLIENT:
        return ClientSelector()
    if match := _GROUP.fullmatch(text):
        return ClientSelector(group=match[1])
    if _NAME.fullmatch(text):
        return ClientSelector(name=text)
    raise UsageError(f"unknown selector {text!r}{hint(text, [CLIENT])}: allowed are {ALLOWED}")


def check(text: str, clients: ClientProcesses) -> None:
    """Raise ``UsageError`` when the text names a process or a group that the workload does not have."""
    selector = parse(text)
    if selector.name is not None and selector.name not in clients.names:
        raise UsageError(
            f"unknown selector {text!r}{hint(text, clients.names)}: the workload has {', '.join(clients.names)}"
        )
    if selector.group is not None:
        check_group(selector.group, clients)


def check_group(group: str, clients: ClientProcesses) -> None:
    """Raise ``UsageError`` when the workload does not have this group of consumers."""
    if group not in clients.groups:
        known = ", ".join(clients.groups) or "no groups of consumers"
        raise UsageError(f"unknown group {group!r}: the workload has {known}")


def resolve(text: str, context: FaultContext, rng: Random) -> str:
    """Return the process that the selector stands for at this moment; raises ``SelectorUnresolved``."""
    selector, clients = parse(text), context.clients
    free = [
        name for name in clients.names if clients.state(name).is_alive and not context.touched[name]
    ]
    if selector.group is not None:
        leader = clients.group_leader(selector.group)
        if leader is None:
            raise SelectorUnresolved(f"no living process leads {selector.group}")
        return _require(leader, free)
    if selector.name is not None:
        return _require(selector.name, free)
    if not free:
        raise SelectorUnresolved("no untouched client process lives")
    return rng.choice(free)


def _require(name: str, free: list[str]) -> str:
    if name not in free:
        raise SelectorUnresolved(f"{name} has ended, or another fault has touched it")
    return name
