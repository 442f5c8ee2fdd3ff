"""A guided exploration: what is kept, what is varied, and that it repeats and resumes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from nemesis.scenarios import scenario as scenarios
from nemesis.searching.explore.corpus import Corpus
from nemesis.searching.explore.coverage_counts import Coverage, Reach
from nemesis.searching.explore.exploration import Exploration
from nemesis.searching.explore.guide import Candidate, Guide
from nemesis.searching.explore.pool import Crashed
from nemesis.searching.explore.swarm import vary
from nemesis.searching.explore.tally import Tally

SCENARIO = scenarios.override(
    scenarios.load("partition-controller"), runtime="simulation", time_limit_s=20
)


def guide(folder: Path) -> Guide:
    return Guide(Corpus.read(folder, SCENARIO))


def reached(*labels: str, never: tuple[str, ...] = ()) -> Coverage:
    counts = {label: Reach(1, 1) for label in labels} | {label: Reach() for label in never}
    return Coverage(1, {"group": counts})


def test_without_a_corpus_runs_are_those_of_blind_exploration(tmp_path: Path) -> None:
    fresh = guide(tmp_path)
    assert [fresh.choose(number) for number in (1, 2)] == [Candidate(1, None), Candidate(2, None)]


def test_a_run_is_kept_if_and_only_if_it_reaches_something_new(tmp_path: Path) -> None:
    learner = guide(tmp_path)
    plan = vary(SCENARIO, 1).plan
    learner.learn(1, plan, reached("a", "b", never=("c",)))
    learner.learn(2, plan, reached("a"))
    learner.learn(3, plan, reached("a", "c"))
    assert [(kept.seed, kept.new) for kept in learner.corpus.entries] == [
        (1, ("group: a", "group: b")),
        (3, ("group: c",)),
    ]


def test_a_resumed_guide_knows_what_is_not_new(tmp_path: Path) -> None:
    guide(tmp_path).learn(1, vary(SCENARIO, 1).plan, reached("a", "b"))
    resumed = guide(tmp_path)
    resumed.learn(2, vary(SCENARIO, 2).plan, reached("a", "b"))
    assert resumed.summary() == {
        "corpus": str(tmp_path),
        "entries": 1,
        "new_entries": 0,
        "features": 2,
    }


def test_kept_runs_are_varied_in_plan_and_seed_and_some_runs_stay_fresh(tmp_path: Path) -> None:
    chooser = guide(tmp_path)
    plan = vary(SCENARIO, 1).plan
    chooser.learn(1, plan, reached("a"))
    chosen = [chooser.choose(number) for number in range(100, 200)]
    assert sum(candidate.plan is None for candidate in chosen) in range(10, 41)
    varied = [candidate for candidate in chosen if candidate.plan is not None]
    assert any(candidate.seed == 1 and candidate.plan != plan for candidate in varied)
    assert any(candidate.seed != 1 and candidate.plan == plan for candidate in varied)
    assert all((candidate.seed, candidate.plan) != (1, plan) for candidate in varied)


def test_the_same_corpus_and_numbers_give_the_same_runs(tmp_path: Path) -> None:
    for seed in (1, 2, 3):
        guide(tmp_path).learn(seed, vary(SCENARIO, seed).plan, reached(str(seed)))
    chooser, other = guide(tmp_path), guide(tmp_path)
    assert [chooser.choose(n) for n in range(50)] == [other.choose(n) for n in range(50)]


def test_rare_features_attract_runs(tmp_path: Path) -> None:
    chooser = guide(tmp_path)
    unusual, common = vary(SCENARIO, 1).plan, vary(SCENARIO, 2).plan
    chooser.learn(1, unusual, reached("rare"))
    chooser.learn(2, common, reached("common"))
    for _ in range(20):
        chooser.learn(3, common, reached("common"))
    seeds = [candidate.seed for n in range(100, 120) if (candidate := chooser.choose(n)).plan]
    assert seeds.count(1) > seeds.count(2)


def exploration(folder: Path) -> Exploration:
    return Exploration(
        scenario=SCENARIO,
        first_seed=1,
        seeds=4,
        jobs=1,
        store=folder / "store",
        command_line=("nemesis", "explore"),
        guide=guide(folder / "corpus"),
    )


def test_a_crash_records_seed_and_plan(tmp_path: Path) -> None:
    guided = exploration(tmp_path)
    tally = Tally(asked=4, repeats=guided.repeats)
    guided.take(Crashed(guided.task(3, tally), "KeyError: 7"), tally)
    said = Path(str(tally.crashed[3].file)).read_text()
    assert f"--guided --corpus {tmp_path / 'corpus'} --jobs 1 --first-seed 1 --seeds 4" in said
    assert "seed 3 with the plan:\n- at_s:" in said


def test_a_real_exploration_repeats_and_resumes(tmp_path: Path) -> None:
    first = exploration(tmp_path / "a")
    tally = first.run()
    assert (tally.done, tally.crashed, tally.properties_found) == (4, {}, {})
    again = exploration(tmp_path / "b").run()
    assert again.hashes == tally.hashes
    files = {path.name for path in (tmp_path / "a" / "corpus").iterdir()}
    assert files == {path.name for path in (tmp_path / "b" / "corpus").iterdir()}
    resumed = replace(exploration(tmp_path / "a"), first_seed=5, seeds=2)
    assert resumed.guide is not None
    assert len(resumed.guide.corpus.entries) == len(files) > 0
    assert resumed.run().done == 2
    assert "orders around elections" in tally.coverage.reached
