"""The histories that compile the kernels are read by them, and correct."""

from __future__ import annotations

from pathlib import Path

import pytest

from nemesis.cli.kernel_cache import WORKLOADS, history
from nemesis.history.foreign.plain.histories import WORTH_COMPILED, read_plain


@pytest.mark.parametrize("workload", WORKLOADS)
def test_a_history_is_plain_and_large_enough(workload: str, tmp_path: Path) -> None:
    file = tmp_path / "history.edn"
    file.write_text("".join(history(WORKLOADS[workload])), "utf-8")
    assert file.stat().st_size >= WORTH_COMPILED
    assert read_plain(file, workload) is not None
