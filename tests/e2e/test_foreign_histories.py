"""``nemesis check FILE --workload W``: a history from elsewhere is judged, reported and kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nemesis.checkers import FOREIGN
from nemesis.cli.app import call
from nemesis.history.foreign.importing import WORKLOADS
from nemesis.support.errors import EXIT_USAGE

VALID, INVALID, UNKNOWN = 0, 1, 2

LOG = """{:type :invoke, :f :send, :value [[:send 0 "a"]], :process 0, :time 10, :index 0}
{:type :ok, :f :send, :value [[:send 0 [0 "a"]]], :process 0, :time 20, :index 1}
{:type :invoke, :f :poll, :value [[:poll]], :process 1, :time 30, :index 2}
{:type :ok, :f :poll, :value [[:poll {0 [[0 "a"]]}]], :process 1, :time 40, :index 3}
"""
DIVERGED = """{:type :invoke, :f :poll, :value [[:poll]], :process 2, :time 50, :index 4}
{:type :ok, :f :poll, :value [[:poll {0 [[0 "b"]]}]], :process 2, :time 60, :index 5}
"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def judged(
    capsys: pytest.CaptureFixture[str], text: str, workload: str, *options: str
) -> tuple[int, dict[str, Any]]:
    """Check a history; return the exit code and what is said for machines."""
    Path("history.edn").write_text(text, encoding="utf-8")
    arguments = ["check", "history.edn", "--workload", workload, "--engine", "inline", "--json"]
    code = call([*arguments, *options])
    return code, json.loads(capsys.readouterr().out)


def broken(said: dict[str, Any]) -> list[str]:
    return [
        result["property"]
        for result in said["outcome"]["results"]
        if result["verdict"] == "invalid"
    ]


def test_every_workload_can_be_read_and_judged() -> None:
    assert list(WORKLOADS) == list(FOREIGN)


def test_a_history_becomes_a_run(capsys: pytest.CaptureFixture[str], place: Path) -> None:
    code, said = judged(capsys, LOG, "kafka")
    assert (code, said["verdict"]) == (VALID, "valid")
    run = Path(said["run"])
    assert run.parent == place / "store" / "kafka"
    assert said["replay"] == f"nemesis check {run.relative_to(place)}"
    about = json.loads((run / "run.json").read_text())["foreign"]
    assert about["workload"] == "kafka"
    assert about["file"] == str(place / "history.edn")
    assert about["bytes"] == len(LOG)
    assert len(about["sha256"]) == 64
    page = (run / "report.html").read_text()
    assert "a history of workload kafka" in page
    assert "Controllers and leaders" not in page
    assert "history.edn" in (run / "junit.xml").read_text()


def test_findings_speak_the_names_of_the_history(capsys: pytest.CaptureFixture[str]) -> None:
    code, said = judged(capsys, LOG + DIVERGED, "kafka")
    assert (code, broken(said)) == (INVALID, ["inconsistent-offset"])
    (result,) = [each for each in said["outcome"]["results"] if each["verdict"] == "invalid"]
    (finding,) = result["findings"]
    assert finding["sentence"] == 'Offset 0 of 0-0 held value "a" and value "b".'
    assert [event.get("values", event.get("value")) for event in finding["events"]] == [
        '"a"',
        ['"b"'],
    ]


def test_it_can_be_judged_again_when_the_file_is_gone(
    capsys: pytest.CaptureFixture[str],
) -> None:
    _, first = judged(capsys, LOG + DIVERGED, "kafka")
    Path("history.edn").unlink()
    code = call(["check", first["run"], "--engine", "inline", "--json"])
    again = json.loads(capsys.readouterr().out)
    assert code == INVALID
    assert again["outcome"]["results"] == first["outcome"]["results"]
    judged_again = ["check", first["run"], "--engine", "inline", "--checkers", "dirty-read", "-v"]
    assert call(judged_again) == VALID
    printed = capsys.readouterr()
    assert "dirty-read" in printed.out
    assert "other properties are kept" in printed.err
    kept = json.loads((Path(first["run"]) / "results.json").read_text())
    assert {result["property"]: result["verdict"] for result in kept["results"]} == {
        result["property"]: result["verdict"] for result in first["outcome"]["results"]
    }
    assert kept["verdict"] == first["verdict"]


def test_only_what_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    _, said = judged(capsys, LOG, "kafka", "--checkers", "duplicate,lost-write")
    assert [result["property"] for result in said["outcome"]["results"]] == [
        "lost-write",
        "duplicate",
    ]


def test_damage_is_said_and_makes_it_unknown(capsys: pytest.CaptureFixture[str]) -> None:
    code, said = judged(capsys, LOG + "{:type :inv", "kafka")
    assert code == UNKNOWN
    assert said["outcome"]["problems"] == [
        "line 5 is cut off where the file ends (it ends inside a value)"
    ]


def test_what_is_proved_stays_proved_whatever_is_missing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = (LOG + DIVERGED).replace(", :index", ", :number")
    lines = text.splitlines(keepends=True)
    code, said = judged(capsys, "".join([lines[0], "garbage\n", *lines[1:]]), "kafka")
    assert (code, broken(said)) == (INVALID, ["inconsistent-offset"])


def test_what_a_missing_operation_may_explain_is_not_proved(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = """{:type :invoke, :f :send, :value [[:send 0 "b"]], :process 0, :time 50}
{:type :ok, :f :send, :value [[:send 0 [1 "b"]]], :process 0, :time 60}
{:type :invoke, :f :poll, :value [[:poll]], :process 1, :time 70}
{:type :ok, :f :poll, :value [[:poll {0 [[2 "c"]]}]], :process 1, :time 80}
"""
    text = LOG.replace(", :index", ", :number") + text
    code, said = judged(capsys, text, "kafka")
    assert (code, broken(said)) == (INVALID, ["lost-write", "poll-skip"])
    code, said = judged(capsys, "garbage\n" + text, "kafka")
    assert (code, broken(said)) == (UNKNOWN, [])
    (skipped,) = [
        result for result in said["outcome"]["results"] if result["property"] == "poll-skip"
    ]
    assert skipped["findings"][0]["sentence"].endswith("one of them may explain it.")


@pytest.mark.parametrize(
    ("content", "arguments", "words"),
    [
        (LOG, [], ["history.edn is a file", "--workload", "kafka", "cas-register"]),
        (LOG, ["--workload", "tea"], ["'tea'", "kafka"]),
        (LOG, ["--workload", "register"], ["poll, send", "read, write"]),
        (LOG, ["--workload", "kafka", "--checkers", "hw-bounded"], ["'hw-bounded'", "dirty-read"]),
        (LOG, ["--workload", "kafka", "--engine", "steam"], ["'steam'", "inline"]),
        (LOG, ["--workload", "kafka", "--store", "history.edn"], ["history.edn"]),
        ("good morning\n", ["--workload", "kafka"], ["history.edn is no history", "line 1"]),
        ("", ["--workload", "kafka"], ["it is empty"]),
    ],
)
def test_bad_input_is_one_sentence_and_leaves_nothing(
    capsys: pytest.CaptureFixture[str],
    place: Path,
    content: str,
    arguments: list[str],
    words: list[str],
) -> None:
    Path("history.edn").write_text(content)
    code = call(["check", "history.edn", "--engine", "inline", *arguments])
    captured = capsys.readouterr()
    assert code == EXIT_USAGE, captured.err
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    for word in words:
        assert word in captured.err
    assert [path.name for path in place.iterdir()] == ["history.edn"]


def test_a_run_that_forgot_its_workload_is_damaged(capsys: pytest.CaptureFixture[str]) -> None:
    _, said = judged(capsys, LOG, "kafka")
    info = Path(said["run"]) / "run.json"
    info.write_text(info.read_text().replace('"workload": "kafka"', '"workload": "tea"'))
    assert call(["check", said["run"], "--engine", "inline"]) == EXIT_USAGE
    assert call(["export", said["run"], "out.edn"]) == EXIT_USAGE
    assert capsys.readouterr().err.count("does not say what the history is of") == 2


def test_a_run_of_ours_takes_no_workload(capsys: pytest.CaptureFixture[str], place: Path) -> None:
    assert call(["check", str(place), "--workload", "kafka"]) == EXIT_USAGE
    assert "is a directory" in capsys.readouterr().err


def test_an_export_can_be_judged_in_its_place(capsys: pytest.CaptureFixture[str]) -> None:
    _, first = judged(capsys, LOG + DIVERGED, "kafka")
    assert call(["export", first["run"], "again.edn"]) == VALID
    assert capsys.readouterr().out == "6 lines of workload kafka: again.edn\n"
    code, again = judged(capsys, Path("again.edn").read_text(), "kafka")
    assert code == INVALID
    assert again["outcome"]["results"] == first["outcome"]["results"]


def test_an_export_of_what_may_be_incomplete_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    text = "".join(LOG.replace(":index 3", ":index 30").splitlines(keepends=True)[1:])
    code, said = judged(capsys, text, "kafka")
    assert code == UNKNOWN
    assert call(["export", said["run"], "again.edn"]) == VALID
    assert "operations may be missing from this history" in capsys.readouterr().err
    assert call(["export", said["run"], "twice.edn", "--json"]) == VALID
    assert json.loads(capsys.readouterr().out)["may_lack_operations"] is True


def test_some_properties_alone_do_not_hide_what_was_left_out(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """1 is appended twice, so that nothing is said of the key, nor of the 9 whose append failed."""
    text = """{:type :invoke, :process 0, :f :txn, :value [[:append 1 1]], :index 0}
{:type :ok, :process 0, :f :txn, :value [[:append 1 1]], :index 1}
{:type :invoke, :process 1, :f :txn, :value [[:append 1 1] [:append 1 9]], :index 2}
{:type :fail, :process 1, :f :txn, :value [[:append 1 1] [:append 1 9]], :index 3}
{:type :invoke, :process 2, :f :txn, :value [[:append 2 1]], :index 4}
{:type :ok, :process 2, :f :txn, :value [[:append 2 1]], :index 5}
{:type :invoke, :process 2, :f :txn, :value [[:r 1 nil] [:r 2 nil]], :index 6}
{:type :ok, :process 2, :f :txn, :value [[:r 1 [1 9]] [:r 2 [1]]], :index 7}
"""
    code, said = judged(capsys, text, "list-append", "--checkers", "G1a")
    assert code == UNKNOWN
    assert {result["property"] for result in said["outcome"]["results"]} == {"well-formed", "G1a"}


def test_an_export_overwrites_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    _, said = judged(capsys, LOG, "kafka")
    for file, words in {
        "history.edn": "history.edn exists already",
        "no/where.edn": "there is no directory no",
    }.items():
        assert call(["export", said["run"], file]) == EXIT_USAGE
        assert words in capsys.readouterr().err
    assert call(["export", "nowhere", "out.edn"]) == EXIT_USAGE
    assert call(["export", "history.edn", "out.edn"]) == EXIT_USAGE
    assert not Path("out.edn").exists()
