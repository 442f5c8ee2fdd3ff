"""What benchmarks measured: what is required of it, files of it, plots of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from rich.console import Console

from benchmarks import bench_core, bench_cycles, bench_queue, bench_register, measuring
from benchmarks.__main__ import PAGE, main
from benchmarks.figures import BEGIN, END, Figure, plots, read, save, summary, with_results
from nemesis.history import spark


def figure(**fields: Any) -> Figure:
    given = {"benchmark": "core", "what": "hot", "size": 20_000_000, "unit": "events"}
    return Figure(**{**given, "seconds": 2.0, **fields})


def text(figures: list[Figure]) -> str:
    console = Console(width=140)
    with console.capture() as capture:
        console.print(summary(figures))
    return capture.get()


def test_a_rate_is_met_or_not() -> None:
    assert figure(required_per_s=10_000_000).is_met
    assert figure(required_per_s=10_000_001).is_met is False


def test_a_time_is_met_below_it_only() -> None:
    assert figure(required_s=2.1).is_met
    assert figure(required_s=2.0).is_met is False


def test_memory_counts_too() -> None:
    assert figure(required_s=3.0, peak_bytes=4, allowed_bytes=4).is_met is False


def test_what_is_not_required_is_neither_met_nor_in_the_summary() -> None:
    assert figure().is_met is None
    assert summary([figure()]).row_count == 0


def test_a_row_says_what_is_required_and_what_was_measured() -> None:
    row = text(
        [figure(required_per_s=5_000_000, scan_s=0.5, peak_bytes=10**9, allowed_bytes=4 * 10**9)]
    )
    for words in ("20 M events", "5 M/s, under 4 GB", "10.0 M/s, 1.0 GB", "4.0", "yes"):
        assert words in row


def test_figures_of_several_runs_are_read_together(tmp_path: Path) -> None:
    file = tmp_path / "figures.jsonl"
    save(file, [figure(scan_s=1.0)])
    save(file, [figure(size=7, required_s=1.5)])
    assert read(file) == [figure(scan_s=1.0), figure(size=7, required_s=1.5)]


def test_time_is_drawn_against_size() -> None:
    figures = [
        figure(size=100_000_000, seconds=9.0),
        figure(size=10_000_000, seconds=2.0),
        figure(size=10_000_000, seconds=1.0),
        figure(size=10_000_000, seconds=3.0, what="spread"),
        figure(size=100_000_000, seconds=30.0, what="spread"),
        figure(benchmark="small", size=60_000, seconds=8.0),
    ]
    assert (
        plots(figures)
        == """\
```mermaid
xychart-beta
    title "Seconds: hot (1), spread (2)"
    x-axis "events" ["10 M", "100 M"]
    y-axis "seconds"
    line [1.00, 9.00]
    line [3.00, 30.00]
```
"""
    )


def test_views_of_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "figures.jsonl"
    save(file, [figure(required_s=3.0), figure(size=40_000_000, seconds=4.0)])
    assert main(["plot", str(file)]) == 0
    assert "line [2.00, 4.00]" in capsys.readouterr().out
    assert main(["summary", str(file)]) == 0
    assert "under 3 s" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["corr"], "no benchmark is called 'corr'"),
        (["core", "--save"], "--save needs a file"),
        (["plot", "no-such-file"], "no-such-file holds no figures"),
    ],
)
def test_bad_usage_is_one_sentence(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 254
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line


def test_a_page_gets_the_results_of_a_file_and_keeps_its_other_texts() -> None:
    page = f"Before.\n{BEGIN}\nold\n{END}\nAfter.\n"
    figures = [figure(required_per_s=10_000_000), figure(size=100_000_000, seconds=9.0)]
    written = with_results(page, figures)
    assert written.startswith(f"Before.\n{BEGIN}\n")
    assert written.endswith(f"{END}\nAfter.\n")
    assert "old" not in written
    assert "| hot | 20 M events | 10 M/s | 10.0 M/s |  | yes |" in written
    assert "line [2.00, 9.00]" in written
    assert with_results(written, figures) == written


def test_a_page_without_room_for_results_is_an_error() -> None:
    with pytest.raises(ValueError, match="expected the lines"):
        with_results("Nothing.", [])


def test_the_page_of_performance_has_room_for_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page, file = tmp_path / "performance.md", tmp_path / "figures.jsonl"
    page.write_text(PAGE.read_text("utf-8"), "utf-8")
    monkeypatch.setattr("benchmarks.__main__.PAGE", page)
    save(file, [figure(required_s=3.0)])
    assert main(["page", str(file)]) == 0
    assert "| hot | 20 M events | under 3 s | 2.0 s |  | yes |" in page.read_text("utf-8")


@pytest.fixture(scope="module")
def _one_spark() -> Iterator[None]:
    """It takes longer to start than what is measured here."""
    yield
    spark.stop()


@pytest.mark.e2e
@pytest.mark.usefixtures("_one_spark")
@pytest.mark.parametrize(
    ("module", "size", "lines"),
    [
        (bench_core, 20_000, 2),
        (bench_queue, 20_000, 2),
        (bench_register, 300_000, 4),
        (bench_cycles, 2_000, 4),
    ],
)
def test_a_benchmark_of_a_tiny_history(
    module: ModuleType, size: int, lines: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "stop", lambda: None)
    monkeypatch.setattr(measuring, "ROUNDS", 1)
    for warm_up in {"WARM_UP_EVENTS", "WARM_UP_RECORDS"} & vars(module).keys():
        monkeypatch.setattr(module, warm_up, size)
    figures = module.main(size)
    assert len({figure.what for figure in figures}) == len(figures) == lines
    assert {(figure.benchmark, figure.size) for figure in figures} == {(module.NAME, size)}
    assert all(figure.seconds > 0 and figure.ratio for figure in figures)
