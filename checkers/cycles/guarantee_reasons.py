"""In words: why no execution keeps a guarantee about what reads have to show."""

from __future__ import annotations

from nemesis.checkers.cycles.edges import WW
from nemesis.checkers.cycles.guarantee_requirements import REQUIRED, Missed, Requirement
from nemesis.checkers.cycles.guarantees import Disagreement, GuaranteeBroken
from nemesis.checkers.cycles.models import CYCLE_EXISTS, Guarantee
from nemesis.checkers.cycles.reasons import Reasons
from nemesis.checkers.cycles.search import Step
from nemesis.checkers.cycles.transaction_names import Words
from nemesis.checkers.cycles.transactions import WRITE
from nemesis.checkers.framework.findings import finding
from nemesis.checkers.framework.model import Finding, Verdict


def broken_finding(words: Words, broken: GuaranteeBroken, model: str) -> Finding:
    """Return the finding that no execution keeps the guarantee."""
    if broken.disagreement is not None:
        return _disagreement(words, broken.disagreement, model)
    if broken.missed is not None:
        return _missed(words, broken.missed, model)
    names = [words.analysis.txns.name(step.source) for step in broken.cycle]
    verb = "have" if len(names) > 1 else "has"
    sentence = f"{_listed(names)} {verb} no order that {model} allows."
    steps = [_step(words, step, broken.guarantee) for step in broken.cycle]
    micros = [m for step in broken.cycle for m in (step.first, step.read) if m >= 0]
    keys = dict.fromkeys(words.key(micro) for micro in micros)
    txns = [step.source for step in broken.cycle] + [words.txn(micro) for micro in micros]
    return _finding(words, ", ".join(keys), sentence, txns, steps)


def _disagreement(words: Words, disagreement: Disagreement, model: str) -> Finding:
    first, second = disagreement.first, disagreement.second
    sentence = (
        f"{words.read(first)}, and {words.name(second)} read {words.value(second)}: "
        f"no order of the appends gives both, so no order keeps {model}."
    )
    txns = [words.txn(first), words.txn(second)]
    return _finding(words, words.key(first), sentence, txns, [])


def _missed(words: Words, missed: Missed, model: str) -> Finding:
    read, first = missed.read, missed.first
    sentence = f"{words.read(read)}, {_earlier(words, read, first)}: {model} forbids that."
    txns = [words.txn(first), words.txn(read)]
    writer = _writer(words, first)
    return _finding(words, words.key(read), sentence, txns + ([writer] if writer >= 0 else []), [])


def _earlier(words: Words, read: int, first: int) -> str:
    """What the read has to show, as a clause."""
    analysis = words.analysis
    is_write, is_own = analysis.micro.code[first] == WRITE, words.txn(read) == words.txn(first)
    if is_write and first > read:
        return f"which it {words.wrote} only later"
    by = "it" if is_own else f"its process, in {words.name(first)},"
    if is_write:
        return f"after {by} had {words.written} {words.value(first)}"
    if analysis.micro.key[first] != analysis.micro.key[read]:
        writer = analysis.txns.name(_writer(words, first))
        return (
            f"after {by} had read {words.value(first)} of {words.key(first)} from {writer}, "
            f"which {words.wrote} to {words.key(read)}, too"
        )
    return f"after {by} had read {words.value(first)}"


def _step(words: Words, step: Requirement, guarantee: Guarantee) -> str:
    txns = words.analysis.txns
    a, b = txns.name(step.source), txns.name(step.target)
    if step.kind != REQUIRED:
        edge = Step(step.source, step.target, step.kind, step.first)
        if step.kind == WW and words.analysis.list_orders is not None:
            return (
                f"{a} comes before {b}: the lists that were read show that {b} appended after it."
            )
        return Reasons(words).of(edge)
    if step.read >= 0:
        shows = f"{words.read(step.read)}, which {b} {words.wrote}"
        return f"{a} comes before {b}: {shows}, {_earlier(words, step.read, step.first)}."
    process = txns.processes[int(txns.process[step.target])]
    if guarantee is Guarantee.MONOTONIC_WRITES:
        return f"{a} comes before {b}: process {process} {words.wrote} in {a} and then in {b}."
    return (
        f"{a} comes before {b}: {words.read(step.first)}, which {a} {words.wrote}, "
        f"and process {process} {words.wrote} later in {b}."
    )


def _writer(words: Words, read: int) -> int:
    """The transaction whose write a read shows last, −1 if it shows none."""
    last_read = int(words.analysis.last_read[read])
    return int(words.analysis.writes.txn[last_read]) if last_read >= 0 else -1


def _listed(names: list[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]


def _finding(words: Words, key: str, sentence: str, txns: list[int], steps: list[str]) -> Finding:
    rows = dict.fromkeys(int(words.analysis.txns.row[txn]) for txn in txns)
    return finding(CYCLE_EXISTS, key, sentence, *rows, verdict=Verdict.INVALID, steps=steps)
