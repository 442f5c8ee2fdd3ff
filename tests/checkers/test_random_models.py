"""Random histories of each model are judged as by trying out everything that the definition of the model asks for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.checkers.random_models import DRAWS, UNDECIDED, count, main

FEW, MANY = 40, 10_000
RARELY = {"kafka"}
"""None of few histories is undecided: it takes several hundred for one."""


@pytest.mark.parametrize("workload", DRAWS)
def test_some_histories_agree_with_the_definition(workload: str) -> None:
    for model, counted in count(workload, range(FEW)).items():
        assert counted.wrong == ()
        assert counted.agree + counted.unknown + counted.undecided == FEW
        assert 0 < counted.right < FEW
        assert (counted.undecided > 0) == (not (UNDECIDED - RARELY).isdisjoint({workload, model}))


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("workload", DRAWS)
def test_ten_thousand_histories_agree_with_the_definition(workload: str) -> None:
    for model, counted in count(workload, range(MANY)).items():
        assert counted.wrong == ()
        assert min(counted.right, MANY - counted.right) > MANY // 25
        assert counted.unknown < MANY // 100
        assert (counted.undecided > 0) == (not UNDECIDED.isdisjoint({workload, model}))


def test_counts_are_appended_by_workload(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "counts.jsonl"
    for workload in ("bank", "mutex", "bank"):
        arguments = ["random_models", str(file), "--histories", "5", "--workload", workload]
        monkeypatch.setattr("sys.argv", arguments)
        main()
    rows = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    assert [(row["workload"], row["histories"]) for row in rows] == [("bank", 5), ("mutex", 5)]
