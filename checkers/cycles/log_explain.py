"""Circles of transactions over logs in words: one sentence, the reason of each step, and the rows that show it."""

from __future__ import annotations

from nemesis.checkers.cycles.edges import PROCESS, WR, WW
from nemesis.checkers.cycles.log_analysis import LogAnalysis
from nemesis.checkers.cycles.search import Cycle, Step
from nemesis.checkers.framework.findings import finding
from nemesis.checkers.framework.model import Finding, Verdict


class LogExplainer:
    """Tells what an analysis found."""

    def __init__(self, analysis: LogAnalysis) -> None:
        self._analysis = analysis

    def tell(self, cycle: Cycle, by: str, allowed: str) -> Finding:
        """Return the finding of a cycle: a sentence, the reason of each step, the rows that show it; ``allowed`` says
        why it is no violation, or nothing.
        """
        names = [self._analysis.txns.name(step.source) for step in cycle.steps]
        listed = f"{', '.join(names[:-1])} and {names[-1]}"
        sentence = f"{listed} have no order: each comes before the next, and the last before the first, {by}."
        if allowed:
            sentence += f" {allowed}"
        verdict = Verdict.VALID if allowed else Verdict.INVALID
        steps = [self._reason(step) for step in cycle.steps]
        steps.append(f"So {names[0]} would have come before itself.")
        rows = {row for step in cycle.steps for row in self._shown_by(step)}
        logs = dict.fromkeys(log for step in cycle.steps for log in self._log_of(step))
        return finding(
            cycle.name, ", ".join(logs), sentence, *sorted(rows), verdict=verdict, steps=steps
        )

    def precommitted(self, name: str, polled: int, allowed: str) -> Finding:
        """Return the finding of a transaction that polled what it sent itself."""
        analysis, records = self._analysis, self._analysis.rows.polled
        poll, send = records.part[polled], analysis.rows.sent.part[analysis.sender[polled]]
        txn = analysis.txns.name(int(analysis.txn[poll]))
        key = f"key {analysis.rows.logs[int(records.log[polled])]}"
        value, offset = records.value[polled], records.offset[polled]
        sentence = f"{txn} polled {value} of {key} (offset {offset}), which it sent itself."
        if allowed:
            sentence += f" {allowed}"
        verdict = Verdict.VALID if allowed else Verdict.INVALID
        rows = sorted({int(analysis.rows.row[send]), int(analysis.rows.row[poll])})
        return finding(name, key, sentence, *rows, verdict=verdict)

    def _reason(self, step: Step) -> str:
        a, b = self._analysis.txns.name(step.source), self._analysis.txns.name(step.target)
        if step.kind == WR:
            polled = self._analysis.rows.polled
            record = f"{polled.value[step.via]} of {self._log_of(step)[0]} (offset {polled.offset[step.via]})"
            because = f"{b} polled {record}, which {a} sent"
        elif step.kind == WW:
            sent, earlier = self._analysis.rows.sent, self._analysis.before[step.via]
            because = (
                f"in {self._log_of(step)[0]}, {sent.value[earlier]} of {a} is at offset {sent.offset[earlier]}, and "
                f"{sent.value[step.via]} of {b} behind it, at {sent.offset[step.via]}"
            )
        elif step.kind == PROCESS:
            process = self._analysis.txns.processes[int(self._analysis.txns.process[step.target])]
            because = f"process {process} had ended {a} when it began {b}"
        else:
            because = f"{a} had ended before {b} began"
        return f"{a} comes before {b}: {because}."

    def _shown_by(self, step: Step) -> list[int]:
        if step.kind == WR:
            sent = self._analysis.rows.sent.part[self._analysis.sender[step.via]]
            parts = [sent, self._analysis.rows.polled.part[step.via]]
        elif step.kind == WW:
            parts = [
                self._analysis.rows.sent.part[step.via],
                self._analysis.rows.sent.part[self._analysis.before[step.via]],
            ]
        else:
            return [
                int(self._analysis.txns.row[step.source]),
                int(self._analysis.txns.row[step.target]),
            ]
        return [int(self._analysis.rows.row[part]) for part in parts]

    def _log_of(self, step: Step) -> list[str]:
        if step.kind not in (WR, WW):
            return []
        placed = self._analysis.rows.polled if step.kind == WR else self._analysis.rows.sent
        return [f"key {self._analysis.rows.logs[int(placed.log[step.via])]}"]
