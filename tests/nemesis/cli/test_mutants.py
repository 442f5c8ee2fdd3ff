"""``nemesis mutants`` on the command line: options that do not go together."""

from __future__ import annotations

from pathlib import Path

import pytest

from nemesis.cli.app import call


def refusal(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """Run ``nemesis mutants``, which has to refuse the options with one sentence; return the sentence."""
    assert call(["mutants", *arguments]) == 254
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert list(Path.cwd().iterdir()) == []
    return error.removeprefix("nemesis: ").rstrip("\n")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ["--generated", "3", "--mutant", "new-leader-truncates"],
            (
                "--mutant: expected it only with the search of planted bugs or --against-blind, "
                "got it with --generated"
            ),
        ),
        (
            ["--seed", "7", "--mutant", "new-leader-truncates"],
            "--seed: expected it only with --generated, got it without --generated",
        ),
        (
            ["--batch", "1/2"],
            "--batch: expected it only with --generated, got it without --generated",
        ),
        (
            ["--against-blind", "2", "--mutant", "new-leader-truncates", "--results", "x"],
            "--results: expected it only with --generated, got it with --against-blind",
        ),
        (
            ["--generated", "3", "--shrink-runs", "500"],
            "--shrink-runs: expected it only with the search of planted bugs, got it with --generated",
        ),
        (
            ["--generated", "3", "--against-blind", "2"],
            "--generated and --against-blind exclude each other: only planted bugs are searched in both ways",
        ),
    ],
)
def test_an_option_of_another_mode_is_refused(
    arguments: list[str],
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert refusal(arguments, capsys) == sentence


def test_the_page_of_one_bug_replaces_no_other_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "scoreboard.md"
    page.write_text("all bugs")
    (work := tmp_path / "work").mkdir()
    monkeypatch.chdir(work)
    sentence = refusal(["--mutant", "new-leader-truncates", "--page", str(page)], capsys)
    assert sentence.startswith(f"--page {page}: expected a new file with --mutant")
    assert page.read_text() == "all bugs"


def test_the_page_of_one_bug_has_its_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    options = ["--seeds", "1", "--jobs", "1", "--shrink-runs", "0", "--time-limit", "20"]
    call(["mutants", "--mutant", "new-leader-truncates", "--page", "one.md", *options])
    rows = [line for line in Path("one.md").read_text().splitlines() if line.startswith("| `")]
    assert len(rows) == 1
    assert rows[0].startswith("| `new-leader-truncates` | leader-keeps-log |")
