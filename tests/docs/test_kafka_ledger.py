"""The Kafka ledger is true: every name has an entry, and every entry a status, a place and a test that exist.

Limit: the source documents are not part of the repository, so ``named`` cannot be compared with them here;
``python -m tests.docs.compare_names DIRECTORY`` does it where they are.
"""

from __future__ import annotations

import ast
from pathlib import Path

import msgspec
import pytest

from tests.docs import compare_names, ledger
from tests.docs.ledger import Entry, Ledger
from tests.docs.source_names import names_in

LOCATION = "reference/controller/controller_context.py::ControllerContext"
HANDLER = "reference/server/apis/produce.py::ProduceApis::handle_produce"
TEST = "tests/reference/controller/test_election.py::test_nobody_alive_nobody_elected"
CODEC_TEST = "tests/reference/protocol/test_codec.py::test_every_offered_request_survives_the_wire"
MESSAGES_TEST = (
    "tests/reference/server/test_messages_by_reference.py"
    "::test_the_messages_of_a_clusters_life_are_what_the_wire_would_make_of_them"
)


def built(name: str = "X", documents: tuple[int, ...] = (0,), **changes: str) -> Entry:
    """Return an entry that is true, but for the changes."""
    values = {"where": LOCATION, "test": TEST} | changes
    return msgspec.convert(
        {"name": name, "documents": documents, "status": "built", **values}, Entry
    )


def planned(name: str = "X", documents: tuple[int, ...] = (0,), **changes: str) -> Entry:
    """Return an entry of something that is not built, but for the changes."""
    values = {"status": "not built", "theme": "later"} | changes
    return msgspec.convert({"name": name, "documents": documents, **values}, Entry)


def ledger_of(entry: Entry, *, named: str = "X", left_out: str = "") -> Ledger:
    """Return a ledger of a single class."""
    themes = {"later": "much"} if entry.theme == "later" else {}
    return Ledger({0: "document"}, themes, {0: named}, {"reason": left_out}, classes=(entry,))


def test_the_ledger_is_true() -> None:
    known = ledger.read(ledger.LEDGER.read_text("utf-8"))
    assert len(known.documents) == 5
    assert len(known.entries) > 400
    assert ledger.problems(known) == []


def test_no_stub_counts_as_built() -> None:
    known = ledger.read(ledger.LEDGER.read_text("utf-8"))
    status = {entry.name: entry.status for entry in known.entries}
    assert status["FIND_COORDINATOR"] == "built"
    assert status["TXN_OFFSET_COMMIT"] == "built"
    assert status["CREATE_ACLS"] == "not built"
    assert status["ControllerApis"] == "not built"


def test_the_table_of_the_controllers_page_is_current() -> None:
    known = ledger.read(ledger.LEDGER.read_text("utf-8"))
    assert ledger.committed() == ledger.render(known), "write it again: python -m tests.docs.ledger"


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
    ("entry", "named"),
    [
        (built(), "X"),
        (built(where=f"{LOCATION}::remove_topic", property="convergence"), "X"),
        (built("ControllerContext.removeTopic"), "removeTopic controllerContext"),
        (built(status="replaced", note="Another way."), "X"),
        (built(status="stub", note="Answers an error."), "X"),
        (planned(), "X"),
    ],
)
def test_a_true_entry_has_no_problem(entry: Entry, named: str) -> None:
    assert ledger.problems(ledger_of(entry, named=named)) == []


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        (Entry("X", (0,), "built"), "X is built: it needs where and test"),
        (Entry("X", (0,), "built", where=LOCATION), "X is built: it needs where and test"),
        (Entry("X", (0,), "stub", note="An error."), "X is stub: it needs where and test"),
        (built(status="stub"), "X is stub: a note must say how"),
        (built(status="replaced"), "X is replaced: a note must say how"),
        (built(theme="later"), "X is built and has a theme"),
        (built(where="reference/no.py::C"), "X: reference/no.py::C does not exist"),
        (built(where=LOCATION + "s"), f"X: {LOCATION}s does not exist"),
        (built(where=LOCATION.partition("::")[0]), "X: reference/"),
        (built(test=TEST + "_"), f"X: the test {TEST}_ does not exist"),
        (built(test=LOCATION), f"X: the test {LOCATION} does not exist"),
        (built(where=HANDLER, test=CODEC_TEST), f"X: {CODEC_TEST} tests the codec, not the handler"),
        (built(where=HANDLER, test=MESSAGES_TEST), f"X: {MESSAGES_TEST} tests the codec"),
        (built(property="luck"), "X: there is no property 'luck'"),
        (planned(theme="never"), "X is not built, and 'never' is not a theme"),
        (planned(test=TEST), "X is not built and has a place"),
        (planned(documents=()), "X is from no document"),
        (planned(documents=(0, 7)), "X: no document 7"),
        (planned("Y"), "document 0 names X: no entry"),
        (planned("Y"), "Y is not among the names of document 0"),
    ],
)  # fmt: skip
def test_a_false_statement_is_reported(entry: Entry, problem: str) -> None:
    assert any(text.startswith(problem) for text in ledger.problems(ledger_of(entry)))


@pytest.mark.parametrize(
    "entry",
    [
        planned("KafkaController"),
        planned("ALTER_ISR", kafka="ALTER_PARTITION"),
        planned("isr-expiration"),
    ],
)
def test_what_the_code_has_cannot_be_not_built(entry: Entry) -> None:
    problems = ledger.problems(ledger_of(entry, named=entry.name))
    assert problems == [f"{entry.name} is not built, but the code has it: say where"]


def test_a_name_has_one_entry() -> None:
    twice = msgspec.structs.replace(ledger_of(planned()), methods=(planned(),))
    assert ledger.problems(twice) == ["X has 2 entries"]


def test_a_theme_without_entries_is_reported() -> None:
    done = msgspec.structs.replace(ledger_of(built()), themes={"done": "all of it"})
    assert ledger.problems(done) == ["no entry has the theme done"]


def test_a_word_is_left_out_only_where_a_document_has_it() -> None:
    assert ledger.problems(ledger_of(built(), named="X The", left_out="The")) == []
    problems = ledger.problems(ledger_of(built(), left_out="The"))
    assert problems == ["The is left out, but no document names it"]


def test_an_unknown_field_is_refused() -> None:
    text = ledger.LEDGER.read_text("utf-8").replace("    where:", "    wher:", 1)
    with pytest.raises(msgspec.ValidationError, match="wher"):
        ledger.read(text)


def test_the_table_shows_the_components_of_the_controllers_documents() -> None:
    shown = ledger.render(ledger_of(built(documents=(3,), property="convergence")))
    position = "[`ControllerContext`](../reference/controller/controller_context.py)"
    test = "[`test_nobody_alive_nobody_elected`](../tests/reference/controller/test_election.py)"
    assert shown.splitlines()[2:] == [f"| `X` | built | {position} | {test} | `convergence` |"]
    assert ledger.render(ledger_of(planned(documents=(1, 2, 4)))).count("\n") == 2
    missing = ledger.render(ledger_of(planned(kafka="Z")))
    assert missing.splitlines()[2:] == ["| `X`, now `Z` | not built: later | – | – | – |"]


def test_names_are_extracted_from_a_document() -> None:
    text = "Then `KafkaApis.handle` 调用handleFetchRequest, see /admin/delete_topics and __consumer_offsets."
    assert names_in(text) == {
        "Then",
        "KafkaApis",
        "handleFetchRequest",
        "/admin/delete_topics",
        "delete_topics",
        "__consumer_offsets",
    }
    assert names_in("task kafka-log-retention, replica.lag.time.max.ms, KAFKA_STORAGE_ERROR") == {
        "kafka-log-retention",
        "replica.lag.time.max.ms",
        "KAFKA_STORAGE_ERROR",
    }


def test_documents_are_compared_with_the_ledger(tmp_path: Path) -> None:
    for number in range(5):
        (tmp_path / f"{number}.txt").write_text("KafkaController", "utf-8")
    (tmp_path / "0.txt").write_text("KafkaController NeverHeardOf\n发表于 NotOfThePage", "utf-8")
    lines = list(compare_names.missing(tmp_path))
    assert "document 0 (0.txt) names NeverHeardOf, the ledger does not" in lines
    assert not any("NotOfThePage" in line for line in lines)
    (tmp_path / "5.txt").write_text("", "utf-8")
    with pytest.raises(ValueError, match="expected 5 documents, got 6 files"):
        list(compare_names.missing(tmp_path))
