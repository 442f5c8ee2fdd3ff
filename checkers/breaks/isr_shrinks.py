"""The smallest histories in which a leader keeps a member that lags."""

from __future__ import annotations

from typing import Any, Final

from nemesis.checkers.breaks.events import TP, append, become_leader, broker, history, started
from nemesis.checkers.breaks.isr_joins import follows
from nemesis.checkers.breaks.late_recovery import configured, fault, measured
from nemesis.history.events import Event

ISR: Final = [1, 2]
STARTED: Final = [started(0, node, unclean=False) for node in ISR]
LEADS: Final = become_leader(1, 1, 2, 0, isr=ISR)
FOLLOWS: Final = follows(1, 2, 2, 0)


def leads(time: int, offset: int) -> Event:
    """Return the leader's append of the record at this offset."""
    return append(time, 1, 2, offset, role="leader")


def smaller(time: int, kind: str = "proposed", isr: list[int] = ISR) -> Event:
    """Return the event that a change of the ISR, away from ``ISR``, is proposed or committed."""
    about: dict[str, Any] = {"leader_epoch": 2, "isr": isr, "maximal_isr": ISR}
    return broker(time, 1, f"isr-change-{kind}", **about, **TP)


BEGUN: Final = (configured(), STARTED, LEADS)
"""The lag time is 4 ms, so who lags has to go within 6 ms."""

ISR_SHRINKS_IN_TIME: Final = (
    history(*BEGUN, FOLLOWS, leads(2, 0), leads(9, 1), measured(10)),
    history(*BEGUN, FOLLOWS, leads(2, 0), append(9, 2, 2, 0), leads(12, 1), measured(10)),
    history(*BEGUN, FOLLOWS, leads(2, 0), smaller(9), measured(10)),
    history(*BEGUN, leads(2, 0), leads(8, 1), measured(10)),
    history(
        *BEGUN,
        FOLLOWS,
        leads(2, 0),
        smaller(5),
        smaller(8, "committed"),
        leads(11, 1),
        measured(12),
    ),
    history(*BEGUN, FOLLOWS, leads(2, 0), fault(3, 8), leads(10, 1), measured(11)),
    history(*BEGUN, FOLLOWS, leads(2, 0), leads(150, 1), measured(151, load=142)),
    history(*BEGUN, FOLLOWS, leads(2, 0), leads(150, 1)),
)
