"""Our chains in one namespace: put in, replaced as a whole, read, and removed without a trace.

``iptables-restore --noflush`` commits a table at once, and naming a chain of ours empties it: at no moment are some
of the new rules there and others not. Whatever else is in the namespace (Docker's own rules) is not touched.

Rules that are replaced take their counters along. They are read just before, by the same shell, so that only what
comes in those milliseconds is missed.
"""

from __future__ import annotations

from collections.abc import Sequence

from nemesis.interfaces.links import Link
from nemesis.runtimes.docker.packets import rules
from nemesis.runtimes.docker.packets.namespace import Namespace, NamespaceError
from nemesis.runtimes.docker.packets.rules import Chain, Count, Role

SAVE = ("iptables-save", "-c", "-t", "filter")
RESTORE = ("iptables-restore", "--noflush", "--wait", "5")

Counted = dict[tuple[Link, Role], Count]


async def install(namespace: Namespace, lines: Sequence[str]) -> None:
    """Put the chains in with these rules, and call them; in place of what is there of ours."""
    await remove(namespace)
    calls = [f"-I {chain.hook} 1 -j {chain}" for chain in Chain]
    await namespace.run(*RESTORE, stdin=_table([*_chains(), *lines, *calls]))


async def replace(namespace: Namespace, lines: Sequence[str]) -> Counted:
    """Put these rules in place of ours; returns what those had counted."""
    script = f"{' '.join(SAVE)} && exec {' '.join(RESTORE)}"
    saved = await namespace.run("sh", "-c", script, stdin=_table([*_chains(), *lines]))
    return rules.counts(saved.splitlines())


async def read(namespace: Namespace) -> Counted:
    """Return what our rules have counted since they were put in."""
    return rules.counts((await namespace.run(*SAVE)).splitlines())


async def remove(namespace: Namespace) -> None:
    """Take out everything of ours; raises ``NamespaceError`` when some of it is still there. Idempotent."""
    if ours := _ours((await namespace.run(*SAVE)).splitlines()):
        await namespace.run(*RESTORE, stdin=_table(_removal(ours)))
        if left := _ours((await namespace.run(*SAVE)).splitlines()):
            raise NamespaceError(f"a rule cannot be removed: {left[0]}")


def _chains() -> list[str]:
    return [f":{chain} - [0:0]" for chain in Chain]


def _ours(saved: Sequence[str]) -> list[str]:
    return [line for line in saved if any(chain in line for chain in Chain)]


def _removal(ours: Sequence[str]) -> list[str]:
    """The calls first, as often as they are there; then the chains, emptied."""
    calls = [
        f"-D {chain.hook} -j {chain}"
        for chain in Chain
        for line in ours
        if f"-A {chain.hook} " in line and line.endswith(f"-j {chain}")
    ]
    chains = [chain for chain in Chain if any(line.startswith(f":{chain} ") for line in ours)]
    return [*calls, *(f"-F {chain}" for chain in chains), *(f"-X {chain}" for chain in chains)]


def _table(lines: Sequence[str]) -> str:
    return "\n".join(["*filter", *lines, "COMMIT", ""])
