"""``docs/survivors.md``: entries, and what is refused; the page of this repository is current."""

from __future__ import annotations

from pathlib import Path

import pytest

from nemesis.mutants.generated.draw import all_mutations
from nemesis.searching.generated.survivors import entries, equivalent_mutants
from nemesis.support.errors import UsageError

ROOT = Path(__file__).parents[4]
NAME = all_mutations(("controller/election",))[0].name
OF_COORDINATOR = all_mutations(("coordinator/transaction/transaction_metadata",))[0].name


def page(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "survivors.md"
    path.write_text(text)
    return path


def test_an_entry_has_a_kind_and_an_argument(tmp_path: Path) -> None:
    text = f"# Survivors\n\n### `{NAME}` is performance only\n\nIt waits\nlonger.\n\n## Other\n"
    [entry] = entries(text)
    assert (entry.name, entry.kind, entry.argument) == (
        NAME,
        "performance only",
        "It waits longer.",
    )
    assert equivalent_mutants(page(tmp_path, text)) == {NAME}


def test_an_entry_stays_when_its_function_moves_to_another_line(tmp_path: Path) -> None:
    module, function, _, rest = NAME.split(":", 3)
    moved = f"### `{module}:{function}:9999:{rest}` is equivalent\n\nBecause.\n"
    assert equivalent_mutants(page(tmp_path, moved)) == {NAME}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (f"### `{NAME}` is fine\n\nBecause.\n", "line 1: expected '### `mutant` is equivalent'"),
        (f"### `{NAME}` is equivalent\n\n## Next\n", "expected an argument"),
        (
            f"### `{NAME[:-8]}00000000` is equivalent\n\nBecause.\n",
            "the function has changed since",
        ),
        (
            "### `a/b:c:1:boundary:0#00000000` is equivalent\n\nBecause.\n",
            "such a mutant does not exist",
        ),
        ("### `nonsense` is equivalent\n\nBecause.\n", "such a mutant does not exist"),
    ],
)
def test_incomplete_stale_and_unknown_entries_are_refused(
    tmp_path: Path, text: str, sentence: str
) -> None:
    with pytest.raises(UsageError) as raised:
        equivalent_mutants(page(tmp_path, text))
    assert sentence in str(raised.value)


def test_an_example_in_a_fence_is_not_an_entry(tmp_path: Path) -> None:
    text = f"```\n### `nonsense` is equivalent\n```\n\n### `{NAME}` is equivalent\n\nBecause.\n"
    assert [entry.name for entry in entries(text)] == [NAME]
    assert equivalent_mutants(page(tmp_path, text)) == {NAME}


def test_a_module_that_is_not_drawn_by_default_has_entries_too(tmp_path: Path) -> None:
    text = f"### `{OF_COORDINATOR}` is equivalent\n\nBecause.\n"
    assert equivalent_mutants(page(tmp_path, text)) == {OF_COORDINATOR}


def test_no_page_has_no_entries(tmp_path: Path) -> None:
    assert equivalent_mutants(tmp_path / "survivors.md") == set()


def test_the_page_of_this_repository_is_current() -> None:
    assert equivalent_mutants(ROOT / "docs" / "survivors.md") is not None
