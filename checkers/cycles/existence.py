"""In words: a cycle exists in every order of versions, or it was not decided whether one does."""

from __future__ import annotations

from nemesis.checkers.cycles.guarantee_reasons import broken_finding
from nemesis.checkers.cycles.key_reasons import contradicted_finding
from nemesis.checkers.cycles.models import CYCLE_EXISTS, Model
from nemesis.checkers.cycles.orders.contradiction import Contradiction
from nemesis.checkers.cycles.orders.contradiction import Reason as Hop
from nemesis.checkers.cycles.orders.verdict import CycleExists
from nemesis.checkers.cycles.skipped_appends import SkippedAppend
from nemesis.checkers.cycles.transaction_names import SHOWN, Words
from nemesis.checkers.framework.findings import finding
from nemesis.checkers.framework.model import Finding, Verdict


def existence_finding(words: Words, exists: CycleExists, model: Model) -> Finding:
    """Return what was decided, as a finding."""
    if exists.bound:
        sentence = f"It is not decided whether an order of the versions keeps {model.name}: {exists.bound}."
        return finding(CYCLE_EXISTS, "the history", sentence, verdict=Verdict.UNKNOWN)
    if exists.contradicted is not None:
        return contradicted_finding(words, exists.contradicted)
    if exists.guarantee is not None:
        return broken_finding(words, exists.guarantee, model.name)
    if exists.skipped is not None:
        return _of_a_part(words, exists.skipped, model)
    assert exists.contradiction is not None
    return _of_orders(words, exists.contradiction, model)


def _of_a_part(words: Words, skipped: SkippedAppend, model: Model) -> Finding:
    writes, txns = words.analysis.writes, words.analysis.txns
    writer, reader = int(writes.txn[skipped.shown]), words.txn(skipped.read)
    shown, missing = int(writes.value[skipped.shown]), int(writes.value[skipped.missing])
    sentence = (
        f"{words.read(skipped.read)}, without {missing}, which {txns.name(writer)} had appended before {shown}: "
        f"{model.name} forbids a read of a part of a transaction."
    )
    return _finding(words, words.key(skipped.read), sentence, [writer, reader], [])


def _of_orders(words: Words, contradiction: Contradiction, model: Model) -> Finding:
    names = [words.analysis.txns.name(txn) for txn in contradiction.txns]
    keys = dict.fromkeys(
        name for cycle in contradiction.cycles for hop in cycle for name in _keys(words, hop)
    )
    is_open = any(hop.before >= 0 for cycle in contradiction.cycles for hop in cycle)
    assumed = f", in either order of the {words.changes} of a key" if is_open else ""
    sentence = f"{_listed(names)} have no order that {model.name} allows{assumed}."
    steps = [_cycle(words, cycle) for cycle in contradiction.cycles]
    return _finding(
        words, ", ".join(keys) or "the history", sentence, list(contradiction.txns), steps
    )


def _finding(words: Words, key: str, sentence: str, txns: list[int], steps: list[str]) -> Finding:
    rows = dict.fromkeys(int(words.analysis.txns.row[txn]) for txn in txns)
    return finding(CYCLE_EXISTS, key, sentence, *rows, verdict=Verdict.INVALID, steps=steps)


def _keys(words: Words, hop: Hop) -> list[str]:
    if hop.read >= 0:
        return [words.key(hop.read)]
    return [] if hop.key < 0 else [_key(words, hop.key)]


def _key(words: Words, key: int) -> str:
    return f"key {words.analysis.micro.keys[key]}"


def _cycle(words: Words, cycle: tuple[Hop, ...]) -> str:
    """One cycle, with the orders that it assumes."""
    name = words.analysis.txns.name
    assumed = dict.fromkeys(
        f"{name(hop.before)} {_wrote(words)} {_key(words, hop.key)} before {name(hop.target)}"
        for hop in cycle
        if hop.before >= 0
    )
    hops = "; ".join(_hop(words, hop) for hop in cycle)
    if not assumed:
        return f"A cycle is certain: {hops}."
    return f"If {' and '.join(assumed)}, a cycle results: {hops}."


def _hop(words: Words, hop: Hop) -> str:
    txns = words.analysis.txns
    a, b = txns.name(hop.source), txns.name(hop.target)
    return f"{a} comes before {b}, because {_because(words, hop, a, b)}"


def _wrote(words: Words) -> str:
    return "wrote" if words.analysis.list_orders is None else "appended to"


def _because(words: Words, hop: Hop, a: str, b: str) -> str:
    is_list = words.analysis.list_orders is not None
    if hop.read < 0:
        if hop.is_known and is_list:
            return f"the lists that were read show that {b} appended after it"
        if hop.is_known:
            return f"--{words.analysis.key_orders.option} states the order of what they wrote"
        if hop.before >= 0:
            return f"it {_wrote(words)} {_key(words, hop.key)} first"
        return f"{a} had ended before {b} began"
    if words.txn(hop.read) == hop.target:
        whose = f"whose last element {a} appended" if is_list else f"which {a} wrote"
        return f"{words.read(hop.read)}, {whose}"
    return f"{words.read(hop.read)}, and {b} {words.wrote} {'to it' if is_list else 'it'} later"


def _listed(names: list[str]) -> str:
    if len(names) > SHOWN:
        return f"{', '.join(names[:SHOWN])} and {len(names) - SHOWN} more"
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]
