"""A bug from a file: what is loaded, and the sentence for each way in which a file can be wrong."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from nemesis.mutants.base import MutantError
from nemesis.mutants.chosen import ChosenMutant, choose_mutant
from nemesis.reference.controller import election
from nemesis.reference.model import LeaderAndIsr
from tests.nemesis.mutants.bug_files import BUG, NAME, write_bug

HEAD = "from nemesis.mutants.base import Mutant, Replacement\n"
ELECTION = "nemesis.reference.controller.election"


def mutant(
    module: object = ELECTION,
    attribute: object = "new_leader_and_isr",
    make: str = "lambda correct: correct",
    name: object = "a",
) -> str:
    replacement = f"Replacement({module!r}, {attribute!r}, {make})"
    return f"Mutant({name!r}, 'property', 'summary', ({replacement},))\n"


def elected_epoch() -> int:
    return election.new_leader_and_isr(LeaderAndIsr(1, 4, (1, 2)), 2, (2,)).leader_epoch


def test_a_file_plants_its_bug_under_the_bugs_own_name(tmp_path: Path) -> None:
    chosen = choose_mutant(str(write_bug(tmp_path)))
    assert chosen.name == NAME
    assert elected_epoch() == 5
    with chosen.load().planted():
        assert elected_epoch() == 4
    assert elected_epoch() == 5


def test_another_process_plants_the_same_bug_without_the_file(tmp_path: Path) -> None:
    path = write_bug(tmp_path)
    chosen = choose_mutant(str(path))
    path.unlink()
    sent: ChosenMutant = pickle.loads(pickle.dumps(chosen))
    with sent.load().planted():
        assert elected_epoch() == 4


def test_a_run_finds_the_variables_of_the_file_as_no_run_has_left_them(tmp_path: Path) -> None:
    counting = f"{HEAD}elections = []\nMUTANT = {mutant(make='lambda _: elections.append')}"
    chosen = choose_mutant(str(write_bug(tmp_path, counting)))
    for _ in range(2):
        append = chosen.load().replacements[0].make(None)
        assert append.__self__ == []
        append(1)


def test_a_file_may_define_dataclasses(tmp_path: Path) -> None:
    lines = ["from __future__ import annotations", "from dataclasses import dataclass", BUG]
    lines += ["@dataclass", "class Lag:", "    records: int", "assert Lag(3).records == 3"]
    assert choose_mutant(str(write_bug(tmp_path, "\n".join(lines)))).name == NAME


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("MUTANT = (", r"expected Python, got '\(' was never closed in line 1: correct"),
        ("\0", r"expected Python, got source code (string|cannot).*: correct"),
        ("\n1 / 0", r"that can be imported, got ZeroDivisionError: division by zero in line 2: "),
        ("import no_such", r"got ModuleNotFoundError: No module named 'no_such' in line 1: "),
        ("raise SystemExit", r"that can be imported, got SystemExit in line 1: correct"),
        ("", r"expected MUTANT = Mutant\(\.\.\.\), got none: see docs/adding\.md"),
        ("MUTANT = 3", r"expected MUTANT = Mutant\(\.\.\.\), got MUTANT of type int: see"),
        (f"{HEAD}BUG = {mutant()}", r"expected MUTANT = Mutant\(\.\.\.\), got BUG: see"),
        (
            f"{HEAD}FIRST = {mutant()}MUTANT = {mutant()}",
            r"expected one mutant, got FIRST, MUTANT: write a file for each",
        ),
        (f"{HEAD}MUTANT = {mutant(name=3)}", r"MUTANT\.name: expected a text, got 3: correct"),
        (f"{HEAD}MUTANT = {mutant(name=' ')}", r"MUTANT\.name: expected a text, got ' ': "),
        (
            f"{HEAD}MUTANT = Mutant('a', 'b', 'c', [])",
            r"MUTANT\.replacements: expected a tuple of at least one Replacement, got \[\]: ",
        ),
        (f"{HEAD}MUTANT = Mutant('a')", r"got TypeError: .*missing 3 .* in line 2: correct"),
        (
            f"{HEAD}MUTANT = {mutant('nemesis.reference.gone', 'it')}",
            r"nemesis\.reference\.gone has no it: a mutant has to name an attribute",
        ),
        (
            f"{HEAD}MUTANT = {mutant(attribute='gone')}",
            r"nemesis\.reference\.controller\.election has no gone: a mutant has to",
        ),
        (
            f"{HEAD}MUTANT = {mutant('nemesis.checkers.checking')}",
            r"expected a replacement in nemesis\.reference, got one in 'nemesis\.checkers\.ch",
        ),
        (f"{HEAD}MUTANT = {mutant(3, 4)}", r"expected a replacement in nemesis\.ref.* got .* 3:"),
        (
            f"{HEAD}MUTANT = {mutant(make='lambda: 1')}",
            r"that can be planted, got TypeError: .*<lambda>.*: correct the file",
        ),
        (
            f"{HEAD}MUTANT = {mutant(make='lambda _: 1 / 0')}",
            r"that can be planted, got ZeroDivisionError: division by zero in line 2: ",
        ),
    ],
)
def test_a_wrong_file_is_refused_in_one_sentence_and_plants_nothing(
    tmp_path: Path, text: str, sentence: str
) -> None:
    path = write_bug(tmp_path, text)
    before = election.new_leader_and_isr
    with pytest.raises(MutantError, match=f"^{path}: .*{sentence}") as raised:
        choose_mutant(str(path))
    assert "\n" not in str(raised.value)
    assert election.new_leader_and_isr is before


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MutantError, match=r"bug\.py: expected a file .*got No such file or dir"):
        choose_mutant(str(tmp_path / "bug.py"))
    (tmp_path / "folder.py").mkdir()
    with pytest.raises(MutantError, match=r"folder\.py: expected a file .*got Is a directory"):
        choose_mutant(str(tmp_path / "folder.py"))
    write_bug(tmp_path).write_bytes(b"\xff")
    with pytest.raises(MutantError, match=r"bug\.py: expected Python in UTF-8, got other bytes"):
        choose_mutant(str(tmp_path / "bug.py"))
