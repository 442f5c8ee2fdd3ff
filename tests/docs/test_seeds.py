"""The seed ledger is true: what it says exists, what it plans does not, and no name of the seeds is left out."""

from __future__ import annotations

import ast

import msgspec
import pytest

from tests.docs import ledger
from tests.docs.ledger import Entry, Ledger

PLACE = "reference/controller/controller_context.py::ControllerContext"
TEST = "tests/reference/controller/test_election.py::test_nobody_alive_nobody_elected"


def one(entry: Entry, *, named: str = "X") -> Ledger:
    """Return a ledger of a single class."""
    themes = {"later": "much"} if entry.planned == "later" else {}
    return Ledger({0: "seed"}, themes, {0: named}, (entry,), (), (), (), (), (), ())


def test_the_ledger_is_true() -> None:
    found = ledger.read(ledger.LEDGER.read_text("utf-8"))
    assert len(found.seeds) == 5
    assert ledger.problems(found) == []


def test_the_table_of_the_controllers_page_is_current() -> None:
    found = ledger.read(ledger.LEDGER.read_text("utf-8"))
    assert ledger.committed() == ledger.render(found), "write it again: python -m tests.docs.ledger"


def test_the_controllers_page_has_every_component() -> None:
    source = (ledger.ROOT / "reference/controller/controller_components.py").read_text("utf-8")
    made = {
        node.value.func.id
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Call)
        and isinstance(node.value.func, ast.Name)
    }
    assert {"ControllerContext", "ControllerChannelManager", "PartitionStateMachine"} <= made
    page = ledger.PAGE.read_text("utf-8").partition(ledger.BEGIN)[0]
    assert [component for component in sorted(made) if component not in page] == []


@pytest.mark.parametrize(
    "entry",
    [
        Entry("X", (0,), module=PLACE, test=TEST),
        Entry("X", (0,), module=f"{PLACE}::remove_topic", test=TEST, property="convergence"),
        Entry("X", (0,), planned="later"),
    ],
)
def test_a_true_entry_has_no_problem(entry: Entry) -> None:
    assert ledger.problems(one(entry)) == []


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        (Entry("X", (0,)), "X needs module and test, or planned"),
        (Entry("X", (0,), module=PLACE), "X needs module and test, or planned"),
        (Entry("X", (0,), module="reference/no.py::C", test=TEST), "X: there is no reference/no.py::C"),
        (Entry("X", (0,), module=PLACE + "s", test=TEST), f"X: there is no {PLACE}s"),
        (Entry("X", (0,), module=PLACE.partition("::")[0], test=TEST), "X: there is no reference/"),
        (Entry("X", (0,), module=PLACE, test=TEST + "_"), f"X: there is no test {TEST}_"),
        (Entry("X", (0,), module=PLACE, test=PLACE), f"X: there is no test {PLACE}"),
        (Entry("X", (0,), module=PLACE, test=TEST, property="luck"), "X: there is no property 'luck'"),
        (Entry("X", (0,), planned="never"), "X is planned under 'never', which is no theme"),
        (Entry("X", (0,), test=TEST, planned="later"), "X is planned and has a place already"),
        (Entry("X", (), planned="later"), "X is from no seed"),
        (Entry("X", (0, 7), planned="later"), "X: no seed 7"),
        (Entry("Y", (0,), planned="later"), "seed 0 names X: no entry"),
        (Entry("Y", (0,), planned="later"), "Y is not among the names of seed 0"),
    ],
)  # fmt: skip
def test_what_is_not_so_is_told(entry: Entry, problem: str) -> None:
    assert any(told.startswith(problem) for told in ledger.problems(one(entry)))


@pytest.mark.parametrize(
    "entry",
    [
        Entry("KafkaController", (0,), planned="later"),
        Entry("ALTER_ISR", (0,), kafka="ALTER_PARTITION", planned="later"),
        Entry("isr-expiration", (0,), planned="later"),
    ],
)
def test_a_plan_that_is_carried_out_is_told(entry: Entry) -> None:
    told = ledger.problems(one(entry, named=entry.name))
    assert told == [f"{entry.name} is planned, but the code has it: say where"]


def test_a_name_has_one_entry() -> None:
    entry = Entry("X", (0,), planned="later")
    twice = msgspec.structs.replace(one(entry), methods=(entry,))
    assert ledger.problems(twice) == ["X has 2 entries"]


def test_a_theme_that_is_done_is_told() -> None:
    ledger_of_one = one(Entry("X", (0,), module=PLACE, test=TEST))
    done = msgspec.structs.replace(ledger_of_one, themes={"done": "all of it"})
    assert ledger.problems(done) == ["nothing is planned under done"]


def test_a_field_that_nobody_knows_is_refused() -> None:
    text = ledger.LEDGER.read_text("utf-8").replace("    module:", "    modul:", 1)
    with pytest.raises(msgspec.ValidationError, match="modul"):
        ledger.read(text)


def test_the_table_shows_the_components_of_the_controllers_seeds() -> None:
    built = Entry("X", (3,), module=PLACE, test=TEST, property="convergence")
    shown = ledger.render(one(built))
    place = "[`ControllerContext`](../reference/controller/controller_context.py)"
    test = "[`test_nobody_alive_nobody_elected`](../tests/reference/controller/test_election.py)"
    assert shown.splitlines()[2:] == [f"| `X` | {place} | {test} | `convergence` |"]
    assert ledger.render(one(Entry("X", (1, 2, 4), planned="later"))).count("\n") == 2
    planned = ledger.render(one(Entry("X", (0,), kafka="Z", planned="later")))
    assert planned.splitlines()[2:] == ["| `X`, now `Z` | planned: later | planned | planned |"]
