"""Small translations: what a message may say that no value of ours stands for."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from nemesis.reference.model import LeaderRecoveryState
from nemesis.reference.network.errors import CloseConnectionError
from nemesis.reference.server.apis.conversion import leader_recovery_state


def test_a_version_without_recovery_states_says_recovered() -> None:
    assert leader_recovery_state(SimpleNamespace()) is LeaderRecoveryState.RECOVERED


def test_a_recovery_state_that_does_not_exist_closes_the_connection() -> None:
    assert (
        leader_recovery_state(SimpleNamespace(leader_recovery_state=1))
        is LeaderRecoveryState.RECOVERING
    )
    with pytest.raises(CloseConnectionError, match="there is no leader recovery state 3"):
        leader_recovery_state(SimpleNamespace(leader_recovery_state=3))
