"""In words: why a version of a register comes before another one, by an option about keys."""

from __future__ import annotations

import numpy as np

from nemesis.checkers.cycles.key_orders import Contradicted
from nemesis.checkers.cycles.models import CYCLE_EXISTS
from nemesis.checkers.cycles.transaction_names import Words
from nemesis.checkers.framework.findings import finding
from nemesis.checkers.framework.model import Finding, Verdict


def contradicted_finding(words: Words, contradicted: Contradicted) -> Finding:
    """Return the finding that no version order of a key keeps an option."""
    txns = words.analysis.txns
    key = f"key {words.analysis.micro.keys[contradicted.key]}"
    versions = [version_name(words, version) for version in contradicted.version]
    initial = words.element(words.analysis.initial)
    following = [*versions[1:], versions[0] if len(versions) > 1 else initial]
    hops = zip(versions, following, contradicted.source, contradicted.target, strict=True)
    steps = [
        f"{before} comes before {after}: {_because(words, source, target, before, after)}."
        for before, after, source, target in hops
    ]
    if len(versions) == 1:
        steps.append(f"The initial value, {initial}, comes before {versions[0]}.")
    sentence = (
        f"No order of the versions of {key} keeps --{contradicted.option}: "
        f"{versions[0]} would come before itself."
    )
    involved = [*contradicted.source, *contradicted.target]
    rows = dict.fromkeys(int(txns.row[txn]) for txn in involved)
    return finding(CYCLE_EXISTS, key, sentence, *rows, verdict=Verdict.INVALID, steps=steps)


def order_reason(words: Words, before: int, writer: int) -> str:
    """Return why a version comes before what a transaction wrote; empty if no option states it."""
    key_orders, writes = words.analysis.key_orders, words.analysis.writes
    pairs = np.flatnonzero((key_orders.before == before) & (writes.txn[key_orders.after] == writer))
    if not len(pairs):
        return ""
    pair = int(pairs[0])
    versions = (
        version_name(words, int(side[pair])) for side in (key_orders.before, key_orders.after)
    )
    source, target = int(key_orders.source[pair]), int(key_orders.target[pair])
    return f"by --{key_orders.option}, {_because(words, source, target, *versions)}"


def version_name(words: Words, version: int) -> str:
    """Return the value of a version."""
    writes = words.analysis.writes
    if version < len(writes):
        return str(writes.value[version])
    return words.element(words.analysis.initial)


def _because(words: Words, source: int, target: int, before: str, after: str) -> str:
    """One transaction had the first version, and a later one the second."""
    txns = words.analysis.txns
    first, second = txns.name(source), txns.name(target)
    if source == target:
        return f"{first} read {before} and then wrote {after}"
    return f"{first} had {before} when it ended, and {second} began later with {after}"
