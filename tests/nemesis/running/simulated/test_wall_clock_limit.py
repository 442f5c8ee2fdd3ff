"""A simulation that never comes to its end is ended: one sentence, exit code 255, and what it recorded is kept."""

from __future__ import annotations

import signal
import threading
from pathlib import Path

import pytest

from nemesis.checkers.framework.model import Verdict
from nemesis.cli import app as cli
from nemesis.history.run_directory import RunDirectory
from nemesis.reference.controller.kafka_controller import KafkaController
from nemesis.running.launch import LOG_FILE
from nemesis.running.simulated import wall_clock_limit
from nemesis.running.simulated.wall_clock_limit import LEAST_LIMIT_S, StillAtWork, limit_s, limited
from nemesis.scenarios import scenario
from nemesis.support.errors import EXIT_CRASH

CHOSEN = scenario.load("partition-controller")


def spin() -> None:
    while True:
        pass


def test_what_takes_too_long_is_ended() -> None:
    with pytest.raises(StillAtWork, match=r"still at work after 0\.05 s"), limited(0.05):
        spin()


def test_a_strike_that_was_swallowed_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wall_clock_limit, "AGAIN_S", 0.05)

    def swallow() -> None:
        try:
            spin()
        except KeyboardInterrupt:
            spin()

    with pytest.raises(StillAtWork), limited(0.05):
        swallow()


def test_what_ends_in_time_leaves_the_limits_of_others_alone() -> None:
    heard = []
    handler = signal.signal(signal.SIGALRM, lambda *_: heard.append("theirs"))
    before = signal.setitimer(signal.ITIMER_REAL, 60.0)
    try:
        with limited(30.0):
            assert signal.getitimer(signal.ITIMER_REAL)[0] <= 30
        assert 50 < signal.getitimer(signal.ITIMER_REAL)[0] <= 60
        signal.raise_signal(signal.SIGALRM)
    finally:
        signal.setitimer(signal.ITIMER_REAL, *before)
        signal.signal(signal.SIGALRM, handler)
    assert heard == ["theirs"]


def test_another_thread_is_not_limited() -> None:
    done = []

    def work() -> None:
        with limited(0.001):
            done.append(signal.getitimer(signal.ITIMER_REAL)[1])

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done == [signal.getitimer(signal.ITIMER_REAL)[1]]


def test_a_long_scenario_may_take_longer() -> None:
    short = scenario.override(CHOSEN, time_limit_s=15.0)
    assert limit_s(short) == LEAST_LIMIT_S
    day = scenario.override(CHOSEN, time_limit_s=86_400.0)
    assert limit_s(day, runs=2) > limit_s(day) > 86_400


def test_a_run_that_hangs_is_one_sentence_and_can_be_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def never(_self: KafkaController) -> None:
        spin()

    monkeypatch.setattr(KafkaController, "_elect", never)
    monkeypatch.setattr(wall_clock_limit, "LEAST_LIMIT_S", 1.0)
    monkeypatch.setattr(wall_clock_limit, "LIMIT_FACTOR", 0.0)
    command = ["run", CHOSEN.name, "--runtime", "simulation", "--seed", "1", "--store"]
    assert cli.call([*command, str(tmp_path)]) == EXIT_CRASH
    said = capsys.readouterr().err.splitlines()[-1]
    run = RunDirectory.open(tmp_path / "latest")
    assert said.startswith("nemesis: the simulation was still at work after 1 s")
    assert f"`nemesis check {run.path.resolve()}`" in said

    assert "in spin" in (run.logs / LOG_FILE).read_text()
    assert run.raw_file("harness").stat().st_size
    assert cli.call(["check", str(run.path), "--engine", "inline"]) == Verdict.UNKNOWN.exit_code
    capsys.readouterr()

    assert cli.call(["replay", str(run.path)]) == EXIT_CRASH
    assert capsys.readouterr().err == "nemesis: the simulation was still at work after 1 s\n"
