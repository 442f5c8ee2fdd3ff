"""The planted bugs that real processes have to show."""

from __future__ import annotations

import pytest

IN_REAL_PROCESSES = (
    "no-controller-epoch-check",
    pytest.param("leader-epoch-not-raised", marks=pytest.mark.nightly),
    "acknowledge-before-replication",
    pytest.param("unfenced-controller-writes", marks=pytest.mark.nightly),
    pytest.param("hw-follows-leader-leo", marks=pytest.mark.nightly),
    pytest.param("truncate-to-hw", marks=pytest.mark.nightly),
)
