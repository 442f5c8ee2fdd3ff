"""The files of a corpus: written in one step, read again, refused with one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemesis.history.run_directory import write_atomically
from nemesis.scenarios import scenario as scenarios
from nemesis.searching.explore.corpus import Corpus, Entry, file_name
from nemesis.searching.explore.swarm import vary
from nemesis.support.errors import HarnessError, UsageError

SCENARIO = scenarios.override(scenarios.load("partition-controller"), runtime="simulation")
OTHER = scenarios.override(scenarios.load("machine-faults"), runtime="simulation")


def entry(seed: int, *new: str) -> Entry:
    return Entry(seed, vary(SCENARIO, seed).plan, new)


@given(seed=st.integers(0, 2**62), new=st.lists(st.text(max_size=20), max_size=3))
def test_an_entry_is_read_as_it_was_written(
    tmp_path_factory: pytest.TempPathFactory, seed: int, new: list[str]
) -> None:
    folder = tmp_path_factory.mktemp("corpus") / "nights"
    corpus = Corpus.read(folder, SCENARIO)
    assert corpus.entries == []
    corpus.add(entry(seed, *new))
    assert Corpus.read(folder, SCENARIO).entries == corpus.entries == [entry(seed, *new)]


def test_corpora_can_be_put_together(tmp_path: Path) -> None:
    for machine, seed in (("a", 1), ("b", 2), ("b", 1)):
        Corpus.read(tmp_path / machine, SCENARIO).add(entry(seed, "x"))
    for file in (tmp_path / "a").iterdir():
        write_atomically(tmp_path / "b" / file.name, file.read_bytes())
    assert {kept.seed for kept in Corpus.read(tmp_path / "b", SCENARIO).entries} == {1, 2}
    assert len(list((tmp_path / "b").iterdir())) == 2


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "truncated"),
        (b"\xff\x00", "is wrong"),
        (b"[]", "object"),
        (b'{"scenario": "partition-controller", "seed": -1, "plan": [], "new": []}', "seed"),
        (
            b'{"scenario": "partition-controller", "seed": 1, "plan": [{"at_s": 1}], "new": []}',
            "unknown fault",
        ),
        (
            b'{"scenario": "partition-controller", "seed": 1, "new": [], "plan": [{"at_s": 8000, "fault": "kill"}]}',
            "ends at",
        ),
        (b'{"scenario": "other", "seed": 1, "plan": [], "new": []}', "another scenario"),
    ],
)
def test_a_bad_file_is_one_sentence_that_names_it(
    tmp_path: Path, content: bytes, words: str
) -> None:
    (tmp_path / "bad.json").write_bytes(content)
    with pytest.raises(UsageError) as refused:
        Corpus.read(tmp_path, SCENARIO)
    said = str(refused.value)
    assert words in said
    assert str(tmp_path / "bad.json") in said
    assert "\n" not in said


def test_a_corpus_of_another_scenario_is_refused(tmp_path: Path) -> None:
    Corpus.read(tmp_path, SCENARIO).add(entry(1, "x"))
    with pytest.raises(UsageError, match="expected machine-faults, got partition-controller"):
        Corpus.read(tmp_path, OTHER)


def test_a_corpus_that_cannot_be_written_fails_the_harness(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(HarnessError, match="cannot be written"):
        Corpus(tmp_path / "file" / "corpus", SCENARIO).add(entry(1, "x"))


def test_the_name_of_a_file_depends_on_seed_and_plan() -> None:
    plan = vary(SCENARIO, 1).plan
    assert file_name(1, plan) == file_name(1, plan)
    assert len({file_name(1, plan), file_name(2, plan), file_name(1, plan[:1])}) == 3
