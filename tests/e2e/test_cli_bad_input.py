"""Bad input: one sentence that names the value and the cure, exit code 254, nothing written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from nemesis.cli.app import call
from nemesis.history.run_directory import RunDirectory, RunInfo
from nemesis.support.errors import EXIT_USAGE

SCENARIO = "partition-controller"


@pytest.fixture(autouse=True)
def _surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = tmp_path / "work"
    directory.mkdir()
    monkeypatch.chdir(directory)
    monkeypatch.setenv("NEMESIS_RUNTIME_DIR", str(tmp_path / "runtime"))


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Call nemesis; return the one sentence that it refuses with."""
    code = call(list(arguments))
    captured = capsys.readouterr()
    assert code == EXIT_USAGE, captured.err
    assert captured.out == ""
    assert captured.err.startswith("nemesis: ")
    assert captured.err.count("\n") == 1, captured.err
    assert "Traceback" not in captured.err
    assert list(Path.cwd().iterdir()) == []
    return captured.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "no-such-scenario"], ["'no-such-scenario'", SCENARIO]),
        (["run", "missing.yaml"], ["missing.yaml cannot be read", "No such file"]),
        (["run", SCENARIO, "--target", "oracle"], ["'oracle'", "reference"]),
        (["run", SCENARIO, "--runtime", "moon"], ["'moon'", "local"]),
        (["run", SCENARIO, "--faults", "kill,flood"], ["'flood'", "kill-controller", "pause"]),
        (["run", SCENARIO, "--faults", ","], ["','", "pause"]),
        (["run", SCENARIO, "--mutant", "gremlin"], ["'gremlin'", "allowed are"]),
        (["run", SCENARIO, "--checkers", "vibes"], ["'vibes'", "hw-bounded"]),
        (["run", SCENARIO, "--engine", "steam"], ["'steam'", "inline", "spark"]),
        (["run", SCENARIO, "--brokers", "-3"], ["--brokers is -3"]),
        (["run", SCENARIO, "--brokers", "999"], ["--brokers is 999"]),
        (["run", SCENARIO, "--brokers", "many"], ["many"]),
        (["run", SCENARIO, "--brokers", "2"], ["--brokers is 2", "replication factor", "is 3"]),
        (["run", SCENARIO, "--seed", "-1"], ["--seed is -1"]),
        (["run", SCENARIO, "--seed", "1e9"], ["1e9"]),
        (["run", SCENARIO, "--time-limit", "-5"], ["--time-limit is -5"]),
        (["run", SCENARIO, "--time-limit", "nan"], ["--time-limit is nan"]),
        (["run", SCENARIO, "--time-limit", "1e300"], ["--time-limit is 1e+300"]),
        (["run", SCENARIO, "--plan", "missing.yaml"], ["missing.yaml cannot be read"]),
        (["run", SCENARIO, "--store", "/proc/nemesis"], ["/proc/nemesis cannot be written"]),
        (["run", SCENARIO, "--store", "/dev/null"], ["/dev/null is a file"]),
        (["run", SCENARIO, "--spark-master", "mars"], ["--spark-master is 'mars'", "local[N]"]),
        (
            ["run", SCENARIO, "--engine", "inline", "--spark-master", "local"],
            ["--spark-master local needs --engine spark"],
        ),
        (["run", SCENARIO, "--faults", "kill", "--plan", "p.yaml"], ["--faults and --plan"]),
        (["run", SCENARIO, "--colour", "red"], ["--colour"]),
        (["run", SCENARIO, "--broker-property", "x"], ["--broker-property is 'x'", "NAME=VALUE"]),
        (
            ["run", SCENARIO, "--broker-property", "a=1", "--broker-property", "a=2"],
            ["--broker-property names a twice"],
        ),
        (["run", SCENARIO, "--broker-property", "num.fingers=10"], ["num.fingers"]),
        (
            ["run", SCENARIO, "--broker-property", "inter.broker.protocol.version=2.7"],
            ["inter.broker.protocol.version is '2.7': allowed are 2.6, 3.9"],
        ),
        (
            ["run", SCENARIO, "--broker-property", "listeners=PLAINTEXT://:7"],
            ["listeners is set by the runtime"],
        ),
        (["run"], ["SCENARIO"]),
        (["dance"], ["dance"]),
        (["check", "nowhere"], ["nowhere"]),
        (["check", "/dev/null"], ["/dev/null"]),
        (["check", "nowhere", "--checkers", "vibes"], ["'vibes'"]),
        (["report", "nowhere"], ["nowhere"]),
    ],
)
def test_bad_input_is_one_sentence(
    capsys: pytest.CaptureFixture[str], arguments: list[str], words: list[str]
) -> None:
    sentence = refused(capsys, *arguments)
    for word in words:
        assert word in sentence


def test_no_java_says_how_to_get_it(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    sentence = refused(capsys, "run", SCENARIO)
    assert "Java" in sentence
    assert "install" in sentence


@pytest.mark.skipif(os.getuid() == 0, reason="root may write anywhere")
def test_a_store_without_permission_is_named(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    store = tmp_path / "locked"
    store.mkdir(mode=0o500)
    assert "locked cannot be written" in refused(capsys, "run", SCENARIO, "--store", str(store))


MIGHTY = ("dac_override", "dac_read_search")
"""What lets root pass over permissions."""


def without_might() -> list[str]:
    """The beginning of a command that may do to files what their permissions say, also when root calls it."""
    dropped = ",".join(f"-{name}" for name in MIGHTY)
    return ["setpriv", f"--bounding-set={dropped}", f"--inh-caps={dropped}"] * (os.getuid() == 0)


@pytest.fixture(scope="module")
def store_with_a_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    store = tmp_path_factory.mktemp("other") / "store"
    simulated = ["--runtime", "simulation", "--time-limit", "15", "--seed", "1"]
    assert call(["run", SCENARIO, *simulated, "--store", str(store)]) in {0, 2}
    return store


@pytest.mark.parametrize(
    ("command", "mode"),
    [
        (["check", "--engine", "inline"], 0o000),
        (["check", "--engine", "inline"], 0o500),
        (["report"], 0o000),
        (["report"], 0o500),
        (["replay"], 0o000),
    ],
)
def test_a_run_of_another_user_is_refused_in_one_sentence(
    store_with_a_run: Path, tmp_path: Path, command: list[str], mode: int
) -> None:
    store = store_with_a_run
    run = (store / "latest").resolve()
    folders = [folder for folder in (run, *run.rglob("*")) if folder.is_dir()]
    for folder in reversed(folders):
        folder.chmod(mode)
    try:
        ran = subprocess.run(
            [*without_might(), sys.executable, "-m", "nemesis", *command, str(run)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    finally:
        for folder in folders:
            folder.chmod(0o755)
    assert ran.returncode == EXIT_USAGE, ran.stderr
    assert ran.stderr.count("\n") == 1
    assert ran.stderr.startswith("nemesis: ")
    assert str(store) in ran.stderr
    assert "ermission denied" in ran.stderr or "is not readable" in ran.stderr


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("name: mine\nbroker: {no.such.property: 1}", "no.such.property"),
        ("name: mine\nbroker: {broker.id: 7}", "broker.id"),
        ("name: mine\nbroker: {min.insync.replicas: many}", "min.insync.replicas"),
        ("name: mine\nworkload: {options: {producers: -2}}", "producers"),
        ("name: mine\nbrokers: [3]", "brokers"),
        ("name: mine\nfaults: {kinds: []}", "kinds"),
        (
            "name: mine\nbrokers: 2\nbroker: {min.insync.replicas: 3}\nworkload: {options: {replication_factor: 1}}",
            "min.insync.replicas is 3",
        ),
    ],
)
def test_a_wrong_scenario_file_is_one_sentence(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str, words: str
) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(text)
    assert words in refused(capsys, "run", str(file))


def test_a_plan_with_an_unknown_fault_names_the_allowed_ones(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "plan.yaml"
    file.write_text("- {at_s: 5, fault: meteor}\n")
    sentence = refused(capsys, "run", SCENARIO, "--plan", str(file))
    assert "'meteor'" in sentence
    assert "kill-controller" in sentence


def make_run(tmp_path: Path) -> RunDirectory:
    return RunDirectory.create(tmp_path / "store", RunInfo(scenario=SCENARIO, seed=1))


def test_a_foreign_directory_is_refused_and_left_alone(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "run.json").write_text(json.dumps({"format": "holiday-photos"}))
    assert "was not written by nemesis" in refused(capsys, "check", str(foreign))
    assert [path.name for path in foreign.iterdir()] == ["run.json"]


def test_a_truncated_run_file_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    run = make_run(tmp_path)
    run.info_file.write_bytes(run.info_file.read_bytes()[:40])
    assert "not valid JSON" in refused(capsys, "check", str(run.path), "--engine", "inline")


def test_a_run_without_events_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    run = make_run(tmp_path)
    sentence = refused(capsys, "check", str(run.path), "--engine", "inline")
    assert "nothing was recorded" in sentence
    assert not run.results_file.exists()


def test_a_report_needs_a_check_first(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    run = make_run(tmp_path)
    assert "was never checked" in refused(capsys, "report", str(run.path))


def test_list_names_every_axis(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["list", "--json"]) == 0
    named = json.loads(capsys.readouterr().out)
    assert {"machine-faults", SCENARIO} <= set(named["scenarios"])
    assert {"partition", "expire-session", "stall-follower"} <= set(named["faults"])
    assert named["checkers"]["hw-bounded"].startswith("The high watermark is never above")
    assert named["foreign checkers"]["set-lost"].startswith("What was added is read from then on.")
    assert named["mutants"]
