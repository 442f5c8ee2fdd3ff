"""The items that fit on a page: bursts drawn once, then those that matter most and lie nearest to the proof."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from nemesis.reports.diagram.gather import ProofTimes
from nemesis.reports.diagram.items import CLIENTS, ZOOKEEPER, Bar, Item, Rank, Scene, Tone

MAX_ROWS: Final = 56
RANK_S: Final = 2.0
"""So far from the proof, in seconds, an item matters as little as one of the next rank beside it."""
MAX_WORTH: Final = 6.0
BURST_NS: Final = 60_000_000
"""Equal items that begin within this time of each other are one burst."""


def select(composed: tuple[Sequence[Item], Sequence[Bar]], instants: ProofTimes) -> Scene:
    """Return the scene to draw. What proves the finding is always in it."""
    items, bars = composed
    merged = _merge_bursts(items)
    chosen = _most_relevant(_relevant_faults(merged, bars, instants), instants)
    begin, end = chosen[0].start, max(stop.time for item in chosen for stop in item.stops)
    inside = [bar for bar in bars if bar.start <= end and (bar.stop is None or bar.stop >= begin)]
    return Scene(
        items=chosen,
        columns=_columns(chosen, inside),
        bars=inside,
        left_out=sum(item.count for item in merged) - sum(item.count for item in chosen),
    )


def _merge_bursts(items: Sequence[Item]) -> list[Item]:
    """Join equal items that follow one another closely; the first is drawn, with the last stop's time."""
    merged: list[Item] = []
    newest: dict[tuple[object, ...], int] = {}
    begun: dict[tuple[object, ...], int] = {}
    for item in items:
        key = item.burst
        if key is not None and key in newest and item.start - begun[key] <= BURST_NS:
            first = merged[newest[key]]
            merged[newest[key]] = replace(
                first, count=first.count + item.count, rank=min(first.rank, item.rank)
            )
            begun[key] = item.start
            continue
        if key is not None:
            newest[key], begun[key] = len(merged), item.start
        merged.append(item)
    return merged


def _relevant_faults(
    items: Sequence[Item], bars: Sequence[Bar], instants: ProofTimes
) -> list[Item]:
    """Leave out faults that were over before the causes are looked for, and those that came after the proof."""
    last = instants.proof_times[-1]
    times = {bar.start for bar in bars if bar.start <= last and not _is_long_over(bar, instants)}
    ends = {bar.stop for bar in bars if bar.start in times}
    return [
        item
        for item in items
        if item.rank is Rank.PROOF
        or item.stops[0].tone is not Tone.FAULT
        or item.start in times
        or (item.start in ends and item.start <= last)
    ]


def _is_long_over(bar: Bar, instants: ProofTimes) -> bool:
    return bar.stop is not None and bar.stop < instants.proof_times[0] - 5_000_000_000


def _most_relevant(items: Sequence[Item], instants: ProofTimes) -> list[Item]:
    def worth(item: Item) -> float:
        """The less, the better."""
        if item.rank is Rank.PROOF or item.stops[0].tone is Tone.FAULT:
            return float(item.rank)
        distance = min(instants.distance(stop.time) for stop in item.stops)
        return item.rank + distance / 1e9 / RANK_S

    chosen: list[Item] = []
    rows = 0
    for item in sorted(items, key=worth):
        fits = rows + item.rows <= MAX_ROWS and worth(item) <= MAX_WORTH
        if item.rank is Rank.PROOF or fits:
            chosen.append(item)
            rows += item.rows
    return sorted(chosen, key=lambda item: item.start)


def _columns(items: Sequence[Item], bars: Sequence[Bar]) -> list[str]:
    """Clients left, brokers by number, ZooKeeper right; only those that are in it."""
    columns = {stop.column for item in items for stop in item.stops} | {bar.column for bar in bars}
    brokers = sorted(columns - {CLIENTS, ZOOKEEPER}, key=lambda name: (len(name), name))
    return [
        *([CLIENTS] if CLIENTS in columns else []),
        *brokers,
        *([ZOOKEEPER] if ZOOKEEPER in columns else []),
    ]
