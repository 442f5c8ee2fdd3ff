"""The forms of files that say the same: compressed, wrapped, printed by columns, filtered, without processes."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pytest

from nemesis.checkers.framework.model import Outcome, Verdict
from nemesis.history.errors import HistoryError
from nemesis.history.foreign.importing import Imported, read_file, write_events
from nemesis.history.foreign.names import Names
from nemesis.history.foreign.origins import Origin, read_origins
from tests.history.foreign.reading import events, events_of, notes, problems, read, rows
from tests.nemesis.judging.foreign_judge import judged

LINES = """{:type :invoke, :f :write, :value 3, :process 0, :index 0}
{:type :ok, :f :write, :value 3, :process 0, :index 1}
{:type :invoke, :f :read, :value nil, :process 1, :index 2}
{:type :ok, :f :read, :value 3, :process 1, :index 3}
"""
ROWS = rows(LINES, "register")
JSON_LINES = [
    '{"type": "invoke", "f": "write", "value": 3, "process": 0}',
    '{"type": "ok", "f": "write", "value": 3, "process": 0}',
    '{"type": "invoke", "f": "read", "value": null, "process": 1}',
    '{"type": "ok", "f": "read", "value": 3, "process": 1}',
]
PRINTED = """0\t:invoke\t:write\t3
0\t:ok\t:write\t3
1\t:invoke\t:read\tnil
1\t:ok\t:read\t3
"""


def test_a_compressed_file(tmp_path: Path) -> None:
    file = tmp_path / "history.edn.gz"
    file.write_bytes(gzip.compress(LINES.encode()))
    read_events = list(events_of(read_file(file), "register", Names()))
    assert [(event.kind, event.f, event.key, event.value) for event in read_events] == ROWS


def test_a_compressed_file_that_is_cut_off(tmp_path: Path) -> None:
    file = tmp_path / "history.edn.gz"
    file.write_bytes(gzip.compress((LINES * 400).encode(), 0)[:-600])
    cut = read_file(file)
    assert "is cut off where the file ends" in " ".join(cut.problems.sentences())


def test_a_binary_store_without_blocks_is_refused_with_what_to_give_instead(tmp_path: Path) -> None:
    file = tmp_path / "test.jepsen"
    file.write_bytes(b"JEPSEN\0\0\0\1" + bytes(40))
    with pytest.raises(HistoryError, match=r"binary store.*history\.edn"):
        read_file(file)


@pytest.mark.parametrize(
    "text",
    [
        PRINTED,
        "".join(
            f"INFO [2024-01-01 10:00:0{n},000] jepsen worker 1 - jepsen.util {line}"
            for n, line in enumerate(PRINTED.splitlines(keepends=True))
        ),
        "".join(f"INFO  jepsen.util - {line}" for line in PRINTED.splitlines(keepends=True)),
        f'{{"history": [{",".join(JSON_LINES)}]}}',
        '{"name": "a", "ops": [\n' + ",\n".join(JSON_LINES) + '\n], "valid": true}\n',
        '{:name "a"\n :history [' + LINES + "]\n :results {:valid? true}}",
        f'{{"config": {{"ops": [{{}}], "x": "{"y" * 6000}"}}, "history": [{",".join(JSON_LINES)}]}}',
        f'{{:config {{:ops [{{}}] :x "{"y" * 6000}"}}\n :history [' + LINES + "]}",
        "\n".join(JSON_LINES).replace('"type": "', '"type": ":').replace('"f": "', '"f": ":'),
        "\n".join(JSON_LINES).replace('"type": "', '":type": ":'),
    ],
)
def test_forms_of_one_history(text: str) -> None:
    if '":type"' in text:
        text = text.replace('"f":', '":f":').replace('"value":', '":value":')
        text = text.replace('"process":', '":process":')
    assert rows(text, "register") == ROWS
    assert problems(text) == []


def test_an_operation_may_take_many_lines() -> None:
    read = {"process": 0, "f": "read"}
    history = [
        {**read, "type": "invoke", "value": None},
        {**read, "type": "ok", "value": list(range(300))},
    ]
    text = json.dumps(history, indent=2)
    assert problems(text, "set") == []
    assert rows(text, "set")[1][-1] == list(range(300))
    torn = text.replace("]\n", "", 1)
    assert problems(torn, "set") != []


def test_an_error_follows_the_value_of_a_printed_operation() -> None:
    text = PRINTED + "2\t:info\t:write\t4\t:timeout\n:nemesis\t:info\t:start\tnil\n"
    assert [event.error for event in events(text, "register") if event.error] == ['":timeout"']


def test_keywords_written_as_text_in_transactions() -> None:
    text = (
        '{"type": ":ok", "process": 0, "f": ":txn", "value": [[":append", 1, 2], [":r", 1, [2]]]}'
    )
    assert rows(text, "list-append")[1][-1] == [1, 1, 1, 2, 0, 1, 1, 2]


def test_the_function_of_a_transaction_is_free() -> None:
    text = LINES.replace(":write, :value 3", ":transfer, :value [[:w 1 3]]")
    text = text.replace(":read, :value nil", ":look, :value [[:r 1]]")
    text = text.replace(":read, :value 3", ":look, :value [[:r 1 3]]")
    assert rows(text, "rw-register")[0] == ("invoke", "txn", None, [1, 1, 1, 3])
    assert problems(text, "rw-register") == []


def test_a_read_without_a_value_is_nil_as_in_elle() -> None:
    text = "{:type :ok, :process 0, :f :txn, :value [[:r :x] [:append :x 1]]}"
    read_nothing = text.replace("[:r :x]", "[:r :x nil]")
    assert rows(text, "list-append") == rows(read_nothing, "list-append")


def test_operations_of_other_functions_are_counted() -> None:
    other = "".join(
        f"{{:type :{type_}, :f :{f}, :value nil, :process 5}}\n"
        for f in ("check", "check", "stop")
        for type_ in ("invoke", "ok")
    )
    text = LINES.replace(", :index", ", :number") + other
    assert problems(text) == []
    assert notes(text) == [
        (
            "each of the 3 lines 5, 7, 9 is of a function that this workload does not judge: it is left out: "
            "2 × :f check, 1 × :f stop"
        )
    ]
    assert judged(text, "register").verdict is Verdict.VALID


def test_a_filtered_history_is_complete() -> None:
    text = LINES.replace(":index 2", ":index 7").replace(":index 3", ":index 9")
    assert problems(text) == []
    assert not read(text).problems.may_lack_operations()
    assert notes(text) == [
        (
            "each of the 2 lines 3–4 follows indexes that are missing: the history is judged as a filtered one, "
            "which is complete"
        )
    ]


@pytest.mark.parametrize(
    "more",
    [
        "{:type :ok, :f :write, :value 4, :process 3, :index 20}\n",
        (
            "{:type :invoke, :f :write, :value 4, :process 3, :index 20}\n"
            "{:type :invoke, :f :write, :value 5, :process 3, :index 21}\n"
        ),
    ],
)
def test_missing_indexes_with_half_an_operation_are_lost_lines(more: str) -> None:
    file = read(LINES + more)
    list(events_of(file, "register", Names()))
    assert file.problems.may_lack_operations()
    assert "line 5 follows indexes that are missing: lines of the history were lost" in (
        file.problems.sentences()
    )


COMPLETIONS = """{:type :ok, :process 0, :f :txn, :value [[:append 1 1]]}
{:type :ok, :process 0, :f :txn, :value [[:append 1 2]]}
{:type :ok, :process 1, :f :txn, :value [[:r 1 [2 1]]]}
"""
STALE = """{:type :ok, :f :txn, :value [[:append 1 1]]}
{:type :ok, :f :txn, :value [[:r 1 [1]]]}
{:type :ok, :f :txn, :value [[:r 1 []]]}
"""


def of_model(text: str, model: str) -> Outcome:
    return judged(text, "list-append", model)


@pytest.mark.parametrize(
    ("text", "model", "verdict"),
    [
        (COMPLETIONS, "serializable", Verdict.VALID),
        (COMPLETIONS, "strong-session-serializable", Verdict.INVALID),
        (COMPLETIONS, "strict-serializable", Verdict.INVALID),
        (STALE, "strict-serializable", Verdict.VALID),
        (STALE.replace(":ok,", ":ok, :process 0,"), "strict-serializable", Verdict.INVALID),
    ],
)
def test_completions_only_are_judged_by_the_order_of_processes(
    text: str, model: str, verdict: Verdict
) -> None:
    assert of_model(text, model).verdict is verdict


def test_without_processes_invocations_find_their_completions() -> None:
    invoked = STALE.replace(":ok", ":invoke").replace("[1]", "nil").replace("[]", "nil")
    text = "".join(
        line
        for both in zip(
            invoked.splitlines(keepends=True), STALE.splitlines(keepends=True), strict=True
        )
        for line in both
    )
    file = read(text)
    assert not file.has_real_time
    kinds = [event.kind for event in events_of(file, "list-append", Names())]
    assert kinds == ["invoke", "ok"] * 3
    assert of_model(text, "strict-serializable").verdict is Verdict.VALID


def test_a_register_without_real_time_is_convicted_or_unknown() -> None:
    """Of completions alone an unwritten value proves nothing: its write may never have completed."""
    unwritten = "{:type :ok, :f :read, :value 9}\n"
    written = "{:type :ok, :f :read, :value nil}\n{:type :ok, :f :write, :value 3}\n"
    stale = written + "{:type :ok, :f :read, :value nil}\n"
    assert judged(written + unwritten, "register").verdict is Verdict.UNKNOWN
    invoked = "{:type :invoke, :f :read}\n"
    assert judged(written + invoked + unwritten, "register").verdict is Verdict.INVALID
    outcome = judged(stale, "register")
    assert outcome.verdict is Verdict.UNKNOWN
    assert "real time" in outcome.problems[0]


def test_overlapping_operations_without_processes_are_not_damage() -> None:
    begun = "".join(f"{{:type :invoke, :f :txn, :value [[:append 1 {n}]]}}\n" for n in (1, 2))
    text = begun + begun.replace(":invoke", ":ok") + "{:type :invoke, :f :txn, :value [[:r 1]]}\n"
    text += "{:type :ok, :f :txn, :value [[:r 1 [2 1]]]}\n"
    assert problems(text, "list-append") == []
    assert judged(text, "list-append").verdict is Verdict.VALID


def test_a_completion_that_stands_twice_is_one() -> None:
    line = "{:type :ok, :process 0, :f :dequeue, :value 1, :index 5}\n"
    assert len(read(line * 2).operations) == 1
    assert len(read(line.replace(", :index 5", "") * 2).operations) == 2


def test_each_event_has_the_line_and_the_index_of_its_file(tmp_path: Path) -> None:
    text = "; a comment\n" + LINES.replace(":index 0", ":index 5").replace(", :index 3", "")
    imported: Imported = write_events(read(text), "register", tmp_path, tmp_path / "clients.jsonl")
    assert not imported.is_timed
    assert read_origins(tmp_path, [0, 1, 3, 9]) == {
        0: Origin(2, 5),
        1: Origin(3, 1),
        3: Origin(5, None),
    }


@pytest.mark.parametrize(
    ("before", "after"), [("", ""), ("[", "]"), ('{"config" {"n" 5} "history" [', "]}")]
)
def test_edn_whose_names_are_texts(before: str, after: str) -> None:
    """Only what follows the first text tells it from JSON."""
    for name in ("type", "f", "value", "process", "index"):
        assert f":{name} " in LINES
    text = re.sub(r":(type|f|value|process|index) ", r'"\1" ', LINES)
    assert rows(before + text + after, "register") == ROWS
    assert rows(before + text.replace('" :', '":') + after, "register") == ROWS
    turned = re.sub(r'^\{("type" :\w+), (.*?), ', r"{\2, \1, ", text, flags=re.MULTILINE)
    assert rows(before + turned + after, "register") == ROWS


def test_json_with_a_space_before_its_colons() -> None:
    text = "\n".join(JSON_LINES).replace('":', '" :')
    assert rows(text, "register") == ROWS
    assert rows('{"ok" :true, "history" :[' + text.replace("\n", ",\n") + "]}", "register") == ROWS
