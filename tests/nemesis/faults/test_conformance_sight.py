"""What the conformance suite makes of what it sees: nothing too much and nothing too little may pass."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nemesis.faults import FAULTS
from nemesis.interfaces.impairment import PacketCounters
from nemesis.interfaces.links import FETCH_API_KEY, Link
from tests.e2e.conformance_effects import EFFECTS, NOTHING, Effect
from tests.e2e.conformance_sight import Sight, against

CALLS = [("client-1", "broker-1"), ("client-1", "broker-2"), ("broker-1", "broker-2")]
THERE, BACK = Link("broker-1", "broker-2"), Link("broker-2", "broker-1")
LINKS = frozenset(link for a, b in CALLS for link in (Link(a, b), Link(b, a)))
COMPLETE = Sight(
    answered_ms=dict.fromkeys(CALLS, 2.0),
    crossed=LINKS,
    packets=dict.fromkeys(LINKS, PacketCounters(forwarded=4)),
)
CUT = replace(
    COMPLETE,
    answered_ms=dict.fromkeys(CALLS[:2], 2.0),
    crossed=LINKS - {THERE},
    held=frozenset({THERE}),
)


def complaints(effect: Effect, sight: Sight) -> str:
    verdict = against(effect, sight, CALLS)
    return "; ".join(
        [f"forbidden: {label}" for label in verdict.forbidden]
        + [f"missing: {label}" for label in verdict.missing]
    )


def lost(*links: Link, count: int = 1) -> Sight:
    suffered = dict.fromkeys(links, PacketCounters(forwarded=4, lost=count))
    return replace(COMPLETE, packets={**COMPLETE.packets, **suffered})


def test_every_kind_has_an_effect_to_be_seen() -> None:
    assert list(EFFECTS) == list(FAULTS)


@pytest.mark.parametrize(
    ("effect", "sight"),
    [
        (NOTHING, COMPLETE),
        (Effect(blocked=frozenset({THERE})), CUT),
        (Effect(silent=frozenset({"broker-2"})), Sight(answered_ms={CALLS[0]: 2.0})),
        (Effect(doubtful=frozenset({"broker-2"})), Sight(answered_ms={CALLS[0]: 2.0})),
        (
            Effect(slow=frozenset({THERE, BACK}), delay_ms=50),
            replace(COMPLETE, answered_ms={**COMPLETE.answered_ms, CALLS[2]: 100.0}),
        ),
        (Effect(impaired=frozenset({THERE, BACK}), counted="lost"), lost(THERE)),
        (
            Effect(narrow=frozenset({"broker-1"}), rate_kbit_s=1_000),
            replace(COMPLETE, rates_kbit_s={"broker-1": 1_050, "broker-2": 90_000}),
        ),
    ],
)
def test_what_is_as_it_must_be_passes(effect: Effect, sight: Sight) -> None:
    assert complaints(effect, sight) == ""


@pytest.mark.parametrize(
    ("effect", "sight", "words"),
    [
        (NOTHING, CUT, f"forbidden: {THERE} holds something; missing: broker-1 to broker-2"),
        (NOTHING, lost(BACK), f"forbidden: {BACK} suffers"),
        (
            Effect(blocked=frozenset({THERE})),
            COMPLETE,
            "forbidden: broker-1 to broker-2 is answered",
        ),
        (Effect(blocked=frozenset({THERE})), replace(CUT, held=frozenset()), "nothing is held"),
        (
            Effect(blocked=frozenset({THERE})),
            replace(CUT, crossed=LINKS),
            f"forbidden: {THERE} lets something through",
        ),
        (
            Effect(blocked=frozenset({THERE})),
            replace(CUT, held=frozenset({THERE, BACK})),
            f"forbidden: {BACK} holds something",
        ),
        (
            Effect(blocked=frozenset({replace(THERE, api_key=FETCH_API_KEY)})),
            CUT,
            f"forbidden: {THERE} holds something",
        ),
        (Effect(blocked=frozenset({THERE})), Sight({}), "missing: client-1 to broker-1"),
        (Effect(silent=frozenset({"broker-2"})), COMPLETE, "client-1 to broker-2 is answered"),
        (Effect(silent=frozenset({"broker-2"})), Sight({}), "missing: client-1 to broker-1"),
        (
            Effect(slow=frozenset({THERE, BACK}), delay_ms=50),
            COMPLETE,
            "forbidden: broker-1 to broker-2 takes only 2.0 ms",
        ),
        (
            Effect(slow=frozenset({THERE, BACK}), delay_ms=50),
            replace(COMPLETE, answered_ms=dict.fromkeys(CALLS, 101.0)),
            "missing: client-1 to broker-1 takes 101.0 ms",
        ),
        (Effect(impaired=frozenset({THERE}), counted="lost"), COMPLETE, "no packet was lost"),
        (
            Effect(impaired=frozenset({THERE}), counted="lost"),
            lost(THERE, BACK),
            f"forbidden: {BACK} suffers",
        ),
        (
            Effect(narrow=frozenset({"broker-1"}), rate_kbit_s=1_000),
            replace(COMPLETE, rates_kbit_s={"broker-1": 1_300, "broker-2": 1_300}),
            "forbidden: broker-1 sends 1300 kbit/s; missing: broker-2 sends only 1300 kbit/s",
        ),
    ],
)
def test_what_is_otherwise_is_named(effect: Effect, sight: Sight, words: str) -> None:
    assert words in complaints(effect, sight)
