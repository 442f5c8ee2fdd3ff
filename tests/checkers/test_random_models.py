"""Random histories of each model are judged as by trying out every order of their operations."""

from __future__ import annotations

import pytest

from tests.checkers.random_models import DRAWS, count

FEW, MANY = 40, 10_000


@pytest.mark.parametrize("workload", DRAWS)
def test_some_histories_agree_with_every_order(workload: str) -> None:
    counted = count(workload, range(FEW))
    assert counted.wrong == ()
    assert counted.agree + counted.unknown == FEW
    assert 0 < counted.right < FEW


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("workload", DRAWS)
def test_ten_thousand_histories_agree_with_every_order(workload: str) -> None:
    counted = count(workload, range(MANY))
    assert counted.wrong == ()
    assert min(counted.right, MANY - counted.right) > MANY // 20
    assert counted.unknown < MANY // 100
