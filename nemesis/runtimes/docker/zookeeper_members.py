"""What a member of a real ensemble says of itself: ``srvr`` for its role, ``cons`` for the sessions that it serves.

Both are ZooKeeper's four-letter words: four bytes over a plain connection, an answer in text, the end. A member that
follows nobody answers that it does not serve; it is left out, as one that does not answer.

The epoch is that of the leader that a member has taken for its own, ``currentEpoch`` in its data directory. The zxid
that ``srvr`` tells is not enough: after an election it stays in the epoch before until the next change.
"""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress

from nemesis.history.zookeeper_log import CURRENT_EPOCH
from nemesis.interfaces.ensemble import ZooKeeperMember
from nemesis.interfaces.links import Address
from nemesis.runtimes.docker.collect import TRANSACTION_LOGS
from nemesis.runtimes.docker.container_node import ContainerNode

ANSWER_TIMEOUT_S = 1.0
SERVING = "Zookeeper version"
MODE = re.compile(r"^Mode: (\S+)$", re.MULTILINE)
SESSION = re.compile(r"\bsid=0x([0-9a-f]+)")
SESSION_BITS = 64


async def ask_member(address: Address, node: ContainerNode) -> ZooKeeperMember | None:
    """Return what the member says; None when it does not answer in time, or does not serve clients."""
    srvr, cons = await asyncio.gather(
        four_letter_word(address, "srvr"), four_letter_word(address, "cons")
    )
    if srvr is None or cons is None:
        return None
    try:
        epoch = int(node.read_file(TRANSACTION_LOGS / CURRENT_EPOCH))
    except (OSError, ValueError):  # it died meanwhile, or is about to write it
        return None
    return parse_member(srvr, cons, epoch)


async def four_letter_word(
    address: Address, word: str, *, timeout_s: float = ANSWER_TIMEOUT_S
) -> str | None:
    """Return the whole answer; None when there was none in time."""
    writer: asyncio.StreamWriter | None = None
    try:
        async with asyncio.timeout(timeout_s):
            reader, writer = await asyncio.open_connection(address.host, address.port)
            writer.write(word.encode())
            answer = await reader.read(-1)
    except (OSError, TimeoutError):
        return None
    finally:
        if writer is not None:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()
    return answer.decode(errors="replace")


def parse_member(srvr: str, cons: str, epoch: int) -> ZooKeeperMember | None:
    """Return what the two answers say; None when the member does not serve clients."""
    mode = MODE.search(srvr)
    if not srvr.startswith(SERVING) or mode is None:
        return None
    return ZooKeeperMember(mode=mode[1], epoch=epoch, sessions=parse_sessions(cons))


def parse_sessions(cons: str) -> tuple[int, ...]:
    """Return the sessions that ``cons`` lists, in order, signed as ``ephemeralOwner`` is."""
    return tuple(sorted({_signed(int(result, 16)) for result in SESSION.findall(cons)}))


def _signed(number: int) -> int:
    return number - (1 << SESSION_BITS) if number >> (SESSION_BITS - 1) else number
