"""One story, judged and reported once for all tests that only read the report."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from nemesis import reports
from nemesis.checkers.framework.model import Outcome
from nemesis.history.run_directory import RunDirectory
from tests.reports import story


@dataclass(frozen=True)
class Reported:
    run: RunDirectory
    outcome: Outcome

    @property
    def page(self) -> str:
        return self.run.report_file.read_text()


@pytest.fixture(scope="session")
def reported(tmp_path_factory: pytest.TempPathFactory) -> Reported:
    run = story.write(tmp_path_factory.mktemp("store"))
    outcome = story.judged(run)
    reports.write(run, outcome)
    return Reported(run, outcome)
