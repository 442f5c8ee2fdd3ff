"""Small histories in the words of other harnesses, and what is to be said of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from nemesis.checkers.cycles.models import MODELS
from nemesis.checkers.framework.model import Verdict
from nemesis.history.foreign.edn import loads
from nemesis.history.foreign.importing import write_events
from nemesis.history.foreign.problems import Damage
from tests.history.foreign.reading import notes, problems, read
from tests.nemesis.judging.foreign_judge import history, judged, verdict_of

ENQUEUED = (
    "invoke 0 enqueue 1",
    "info 0 enqueue nope",
    "invoke 2 enqueue 2",
    "ok 2 enqueue 2",
    "invoke 1 dequeue nil",
    "ok 1 dequeue 1",
    "invoke 1 dequeue nil",
    "ok 1 dequeue 2",
)


@pytest.mark.parametrize(
    ("workload", "lines"),
    [
        (
            "register",
            ("invoke 0 write 1", "info 0 write :timed-out", "invoke 1 read nil", "ok 1 read 1"),
        ),
        (
            "cas-register",
            ("invoke 0 write 1", "info 0 write :timed-out", "invoke 1 cas [1 2]", "ok 1 cas [1 2]"),
        ),
        (
            "register",
            (
                "invoke 0 write [3 1]",
                "info 0 write :timed-out",
                "invoke 1 read [3 nil]",
                "ok 1 read [3 1]",
            ),
        ),
        ("set", ("invoke 0 add 1", "info 0 add :timeout", "invoke 1 read nil", "ok 1 read [1]")),
        (
            "linearizable-set",
            ("invoke 0 add 1", "info 0 add :timeout", "invoke 1 read nil", "ok 1 read [1]"),
        ),
        ("queue", ENQUEUED),
        ("fifo-queue", ENQUEUED),
    ],
)
def test_what_has_no_answer_did_what_it_was_asked_to(workload: str, lines: tuple[str, ...]) -> None:
    assert verdict_of(history(*lines), workload) is Verdict.VALID


def test_a_transaction_of_unknown_outcome_wrote_all_that_it_was_asked_to() -> None:
    text = history(
        "invoke 0 txn [[:w 1 1] [:w 2 1]]",
        "info 0 txn [[:w 1 1]]",
        "invoke 1 txn [[:r 2 nil]]",
        "ok 1 txn [[:r 2 1]]",
    )
    results = {result.property: result.verdict for result in judged(text, "rw-register").results}
    assert results["garbage-read"] is Verdict.VALID


def test_a_write_that_is_acknowledged_without_its_value_was_done() -> None:
    acknowledged = ("invoke 0 write 1", "ok 0 write nil", "invoke 1 read nil")
    assert verdict_of(history(*acknowledged, "ok 1 read 1"), "register") is Verdict.VALID
    assert verdict_of(history(*acknowledged, "ok 1 read nil"), "register") is Verdict.INVALID


def test_what_is_no_number_is_a_value() -> None:
    wrote = ("invoke 0 write ##NaN", "ok 0 write ##NaN", "invoke 1 read nil")
    assert verdict_of(history(*wrote, "ok 1 read ##NaN"), "register") is Verdict.VALID


@pytest.mark.parametrize(("item", "other"), [("#{1 2}", "#{2 1}"), ("{:a 1 :b 2}", "{:b 2 :a 1}")])
def test_what_has_no_order_is_the_same_in_any(item: str, other: str) -> None:
    wrote = (f"invoke 0 write {item}", f"ok 0 write {other}", "invoke 1 read nil")
    assert verdict_of(history(*wrote, f"ok 1 read {other}"), "register") is Verdict.VALID
    keyed = (
        f"invoke 0 write [{item} 1]",
        f"ok 0 write [{other} 1]",
        f"invoke 1 read [{other} nil]",
    )
    assert verdict_of(history(*keyed, f"ok 1 read [{item} 1]"), "register") is Verdict.VALID


def test_objects_of_json_are_the_same_in_any_order() -> None:
    lines = [
        ("invoke", "write", '{"a": 1, "b": [2]}'),
        ("ok", "write", '{"b": [2], "a": 1}'),
        ("invoke", "read", "null"),
        ("ok", "read", '{"b": [2], "a": 1}'),
    ]
    text = "".join(
        f'{{"type": "{kind}", "process": 0, "f": "{f}", "value": {value}}}\n'
        for kind, f, value in lines
    )
    assert verdict_of(text, "register") is Verdict.VALID


@pytest.mark.parametrize(("asked", "reported"), [("1", "true"), ("0", "false"), ("1", "1.0")])
def test_an_answer_that_python_takes_for_the_same_number_convicts_nobody(
    asked: str, reported: str
) -> None:
    text = history(
        f"invoke 0 write {asked}",
        f"ok 0 write {reported}",
        "invoke 1 read nil",
        f"ok 1 read {asked}",
    )
    assert problems(text) == []
    damage = Damage.DENIED if reported == "false" else Damage.STATUS
    assert notes(text) == [f"line 2 {damage.sentence}"]
    assert verdict_of(text, "register") is Verdict.VALID


@pytest.mark.parametrize(
    ("asked", "reported", "query", "answer"),
    [
        ("3", "[7 3]", "nil", "3"),
        ("3", "[7 9 3]", "nil", "3"),
        ("3", "[3 [1 2]]", "nil", "3"),
        ("[:a 3]", "[:a [7 3]]", "[:a nil]", "[:a 3]"),
    ],
)
def test_a_write_that_answers_with_more_than_its_value_wrote_its_value(
    asked: str, reported: str, query: str, answer: str
) -> None:
    text = history(
        f"invoke 0 write {asked}",
        f"ok 0 write {reported}",
        f"invoke 1 read {query}",
        f"ok 1 read {answer}",
    )
    assert problems(text) == []
    assert notes(text) == [f"line 2 {Damage.STATUS.sentence}"]
    assert verdict_of(text, "register") is Verdict.VALID


def test_a_transaction_that_answers_with_another_write_is_damage() -> None:
    text = history(
        "invoke 0 txn [[:w 1 3]]",
        "ok 0 txn [[:w 1 [7 3]]]",
        "invoke 1 txn [[:r 1 nil]]",
        "ok 1 txn [[:r 1 3]]",
    )
    assert problems(text, "rw-register") == ["line 2 completes what its process had not invoked"]
    assert verdict_of(text, "rw-register") is Verdict.UNKNOWN


def test_a_list_is_not_read_from_a_set() -> None:
    text = history(
        "invoke 0 txn [[:append 1 1] [:append 1 2]]",
        "ok 0 txn [[:append 1 1] [:append 1 2]]",
        "invoke 1 txn [[:r 1 nil]]",
        "ok 1 txn [[:r 1 #{2 1}]]",
    )
    assert problems(text, "list-append") == [
        "line 4 has a value that its function cannot have (a read did not return a list)"
    ]
    assert verdict_of(text, "list-append") is Verdict.UNKNOWN


READ_5 = """{:type :invoke :process 1 :f :read :value nil :index 2}
{:type :ok :process 1 :f :read :value 5 :index 3}
"""


@pytest.mark.parametrize(
    ("torn", "location"),
    [("{:type :ok :process 0 :f :write :val", ":index"), ("{:type :invoke :proc", ":time")],
)
def test_what_is_torn_from_a_file_that_is_not_in_order_may_be_any_operation(
    torn: str, location: str
) -> None:
    """The end of the file is not the end of the history."""
    begun = "{:type :invoke :process 2 :f :read :value nil :index 1}\n"
    text = (READ_5 + begun + torn).replace(":index", location)
    assert verdict_of(text, "register") is Verdict.UNKNOWN


def test_indexes_that_are_missing_are_filtered_operations_or_lost_lines() -> None:
    """Who filters a history keeps whole operations: a completion alone proves that lines were lost."""
    begun = "{:type :invoke :process 0 :f :read :value nil :index 0}\n"
    assert problems(begun + READ_5) == []
    assert verdict_of(begun + READ_5, "register") is Verdict.INVALID
    alone = "{:type :ok :process 2 :f :read :value 5 :index 9}\n"
    assert verdict_of(begun + READ_5 + alone, "register") is Verdict.UNKNOWN
    whole = begun + "{:type :info :process 0 :f :read :value nil :index 1}\n" + READ_5
    assert problems(whole) == []
    assert verdict_of(whole, "register") is Verdict.INVALID


def test_a_beginning_that_is_missing_was_filtered_out_if_more_is_missing() -> None:
    """Histories of `independent` keys begin with any index, and lack others, too."""
    begun = "{:type :invoke :process 0 :f :read :value nil :index 7}\n"
    assert problems(READ_5 + begun) == []
    assert verdict_of(READ_5 + begun, "register") is Verdict.INVALID
    from_1 = READ_5.replace(":index 2", ":index 1").replace(":index 3", ":index 2")
    assert problems(from_1) == []
    assert verdict_of(from_1, "register") is Verdict.INVALID


def test_a_beginning_alone_that_is_missing_was_cut_off() -> None:
    assert problems(READ_5) == [
        "line 1 follows indexes that are missing, and no other is: the beginning of the history was cut off"
    ]
    assert verdict_of(READ_5, "register") is Verdict.UNKNOWN


def test_a_line_that_cannot_be_read_is_where_the_indexes_are_missing() -> None:
    begun = "{:type :invoke :process 0 :f :read :value nil :index 0}\n{:f 3}\n"
    assert [problem.partition(" (")[0] for problem in problems(begun + READ_5)] == [
        "line 2 cannot be read as an operation"
    ]


def test_one_line_without_a_time_does_not_take_the_times_from_the_others() -> None:
    text = """{:type :invoke :process 1 :f :read :value nil :time 20}
{:type :ok :process 1 :f :read :value 5 :time 30}
{:type :invoke :process 0 :f :write :value 5 :time 0}
{:type :ok :process 0 :f :write :value 5 :time 10}
{:type :info :process :nemesis :f :kill}
"""
    assert [operation.line for operation in read(text).operations] == [3, 4, 5, 1, 2]
    assert verdict_of(text, "register") is not Verdict.INVALID
    stale = text.replace(":value 5 :time 30", ":value 4 :time 30")
    assert verdict_of(stale, "register") is Verdict.UNKNOWN


@pytest.mark.parametrize("value", [r'"\ud800"', r'{"\udfff": ["\ud800x"]}'])
def test_text_that_no_file_can_hold_is_spelled_out(value: str, tmp_path: Path) -> None:
    said = (
        ("invoke", "write", value),
        ("ok", "write", value),
        ("invoke", "read", "null"),
        ("ok", "read", value),
    )
    text = "".join(
        f'{{"type": "{kind}", "process": 0, "f": "{f}", "value": {item}, "error": {value}}}\n'
        for kind, f, item in said
    )
    assert verdict_of(text, "register") is Verdict.VALID
    imported = write_events(read(text), "register", tmp_path, tmp_path / "raw")
    assert imported.problems == []


def test_texts_that_no_file_can_hold_differ_as_they_did() -> None:
    wrote = (r'invoke 0 write "\ud800"', r'ok 0 write "\ud800"', "invoke 1 read nil")
    assert verdict_of(history(*wrote, r'ok 1 read "\ud800"'), "register") is Verdict.VALID
    assert verdict_of(history(*wrote, r'ok 1 read "\ud801"'), "register") is Verdict.INVALID


def test_half_characters_that_belong_together_are_one() -> None:
    assert loads(r'"\ud83d\ude00"') == "\N{GRINNING FACE}"


ASSIGNED = (
    "invoke 0 assign [:x]",
    "ok 0 assign [:x]",
    "invoke 1 send [[:send :x 7]]",
    "ok 1 send [[:send :x [0 7]]]",
    "invoke 1 send [[:send :x 8]]",
    "ok 1 send [[:send :x [1 8]]]",
    "invoke 0 poll [[:poll]]",
    "ok 0 poll [[:poll {:x [[0 7]]}]]",
    "invoke 0 poll [[:poll]]",
    "ok 0 poll [[:poll {}]]",
)


def test_a_consumer_that_is_assigned_a_log_read_it_to_its_end() -> None:
    assert verdict_of(history(*ASSIGNED), "kafka") is Verdict.INVALID
    subscribed = [line.replace("assign", "subscribe") for line in ASSIGNED]
    assert verdict_of(history(*subscribed), "kafka") is Verdict.VALID
    in_doubt = [*ASSIGNED[:-1], "info 0 poll [[:poll]]"]
    assert verdict_of(history(*in_doubt), "kafka") is Verdict.VALID


def test_a_clock_of_milliseconds_convicts_no_correct_system() -> None:
    ends = (
        (0, "invoke", "write", "1", 0),
        (0, "ok", "write", "1", 10),
        (1, "invoke", "read", "nil", 10),
    )
    lines = [
        f"{{:process {process} :type :{kind} :f :{f} :value {value} :time {time}}}"
        for process, kind, f, value, time in (*ends, (1, "ok", "read", "nil", 20))
    ]
    assert verdict_of("\n".join(lines), "register") is Verdict.VALID
    late = [line.replace(":time 10", ":time 11") if "read" in line else line for line in lines]
    assert verdict_of("\n".join(late), "register") is Verdict.INVALID


@pytest.mark.parametrize(("read_back", "expected"), [("2", Verdict.VALID), ("1", Verdict.INVALID)])
def test_numbers_that_a_float_would_round_stay_different(read_back: str, expected: Verdict) -> None:
    exact = "1474573498123456789.000000000{}M"
    written = [f"{kind} 0 write {exact.format(n)}" for n in (1, 2) for kind in ("invoke", "ok")]
    text = history(*written, "invoke 1 read nil", f"ok 1 read {exact.format(read_back)}")
    assert verdict_of(text, "register") is expected
    ids = [
        f'{{"type": "{kind}", "process": 0, "f": "generate", "value": {value}}}'
        for value in ("1700000000000000000.1", "1700000000000000000.2")
        for kind in ("invoke", "ok")
    ]
    assert verdict_of("\n".join(ids), "unique-ids") is Verdict.VALID


@pytest.mark.parametrize(
    ("balances", "expected"),
    [
        (("5.0", "5"), Verdict.VALID),
        (("4000000000000000000", "5"), Verdict.VALID),
        (("-4000000000000", "5"), Verdict.INVALID),
        (("nil", "10"), Verdict.INVALID),
        (("2.5", "7.5"), Verdict.UNKNOWN),
        (('"5.00"', "5"), Verdict.UNKNOWN),
        (("9000000000000000000", "5"), Verdict.UNKNOWN),
    ],
)
def test_a_balance_that_cannot_be_added_convicts_no_bank(
    balances: tuple[str, str], expected: Verdict
) -> None:
    text = history("invoke 0 read nil", f"ok 0 read {{:a {balances[0]} :b {balances[1]}}}")
    assert verdict_of(text, "bank") is expected


def by_key(*lines: str) -> str:
    """Lines of JSON of ``type f key value``."""
    said = []
    for line in lines:
        kind, f, key, value = line.split(maxsplit=3)
        said.append(
            f'{{"type": "{kind}", "process": 0, "f": "{f}", "key": "{key}", "value": {value}}}'
        )
    return "\n".join(said) + "\n"


@pytest.mark.parametrize(
    ("workload", "lines", "expected"),
    [
        ("register", ("write x 1", "write y 2", "read x 1"), Verdict.VALID),
        ("register", ("write x 1", "write y 2", "read x 2"), Verdict.INVALID),
        ("cas-register", ("write x 1", "write y 2", "cas x [1,2]", "read x 2"), Verdict.VALID),
        ("set", ("add x 1", "add y 2", "read x [1]", "read y [2]"), Verdict.VALID),
        ("set", ("add x 1", "add y 2", "read x []", "read y [2]"), Verdict.INVALID),
        ("counter", ("add x 1", "add y 2", "read x 1"), Verdict.VALID),
        ("counter", ("add x 1", "add y 2", "read x -1"), Verdict.INVALID),
        ("pn-counter", ("add x -1", "add y 2", "read x 1"), Verdict.INVALID),
    ],
)
def test_a_key_may_be_an_entry_of_its_own(
    workload: str, lines: tuple[str, ...], expected: Verdict
) -> None:
    both = [
        f"{kind} {'read ' + line.split()[1] + ' null' if is_asked and 'read' in line else line}"
        for line in lines
        for kind, is_asked in (("invoke", True), ("ok", False))
    ]
    assert problems(by_key(*both), workload) == []
    assert verdict_of(by_key(*both), workload) is expected


def test_a_key_in_an_entry_and_beside_the_value_is_one_key() -> None:
    text = by_key('invoke write x ["x",1]', "ok write x null", "invoke read x null", "ok read x 1")
    assert problems(text) == []
    assert verdict_of(text, "register") is Verdict.VALID


@pytest.mark.parametrize(
    ("workload", "function", "asked", "read_back"),
    [
        ("cas-register", "cas", "[1 2]", "2"),
        ("register", "write", "2", "2"),
        ("counter", "add", "2", "2"),
        ("set", "add", "2", "[2]"),
        ("register", "write", "[:x 2]", "[:x 2]"),
    ],
)
@pytest.mark.parametrize("status", ["true", '"OK"', ":ok", "{:version 7}"])
def test_a_status_is_not_the_value_of_a_write(
    workload: str, function: str, asked: str, read_back: str, status: str
) -> None:
    text = history(
        *(f"{kind} 0 write 1" for kind in ("invoke", "ok") if function == "cas"),
        f"invoke 0 {function} {asked}",
        f"ok 0 {function} {status}",
        f"invoke 0 read {'[:x nil]' if ':x' in asked else 'nil'}",
        f"ok 0 read {read_back}",
    )
    assert verdict_of(text, workload) is Verdict.VALID
    assert problems(text, workload) == []
    assert any("that of the invocation counts" in note for note in notes(text, workload))


def test_a_total_is_not_what_was_added_if_no_line_is_missing() -> None:
    text = history("invoke 0 add 2", "ok 0 add 2", "invoke 0 add 3", "ok 0 add 5")
    text += "{:type :invoke :process 0 :f :read :index 4}\n{:type :ok :process 0 :f :read :value 5 :index 5}\n"
    assert verdict_of(text, "counter") is Verdict.VALID
    assert problems(text, "counter") == []
    lossy = "\n".join(line.split(", :index")[0] + "}" for line in text.splitlines()[:4])
    assert problems(lossy, "counter") == ["line 4 completes what its process had not invoked"]


def test_a_read_that_names_its_key_in_the_invocation_did_not_return_nil() -> None:
    text = history("invoke 0 write 1", "ok 0 write 1", "invoke 0 read :x", "ok 0 read 1")
    assert verdict_of(text, "register") is Verdict.UNKNOWN


@pytest.mark.parametrize(
    ("end", "expected"),
    [("fail", Verdict.VALID), ("ok", Verdict.UNKNOWN), ("info", Verdict.UNKNOWN)],
)
@pytest.mark.parametrize("repeated", [(), ("invoke 0 write 1", "ok 0 write 1")])
def test_a_compare_and_set_that_failed_changes_no_register(
    end: str, expected: Verdict, repeated: tuple[str, ...]
) -> None:
    text = history(
        "invoke 0 write 1",
        "ok 0 write 1",
        *repeated,
        "invoke 0 cas [3 4]",
        f"{end} 0 cas [3 4]",
        "invoke 0 read nil",
        "ok 0 read 1",
    )
    assert verdict_of(text, "register") is expected
    assert any("does not judge" in note for note in notes(text)) is (end == "fail")


@pytest.mark.parametrize(
    ("workload", "lines"),
    [
        ("register", ("invoke 0 write 3", "ok 0 write false")),
        ("register", ("invoke 0 write [1 3]", "ok 0 write [1 false]")),
        ("cas-register", ("invoke 0 cas [9 4]", "ok 0 cas false")),
        ("cas-register", ("invoke 0 cas [1 [9 4]]", "ok 0 cas [1 false]")),
    ],
)
def test_an_ok_with_the_result_false_has_an_unknown_outcome(
    workload: str, lines: tuple[str, ...]
) -> None:
    """It did not take effect, or it did: each of both histories has an order if one of them has."""
    is_keyed = lines[1].endswith("]")
    read = (
        ("invoke 1 read [1 nil]", "ok 1 read [1 nil]")
        if is_keyed
        else ("invoke 1 read nil", "ok 1 read nil")
    )
    text = history(*lines, *read)
    assert verdict_of(text, workload) is Verdict.VALID
    assert notes(text, workload) == [f"line 2 {Damage.DENIED.sentence}"]
    written = history("invoke 0 write 3", "ok 0 write true", *read)
    assert is_keyed or verdict_of(written, workload) is Verdict.INVALID


def test_a_completion_that_fits_several_open_invocations_began_with_the_first() -> None:
    """Process 0 has several operations at once, and its first transaction ends last."""
    lines = (
        ("invoke", 0, "[[:r 1 nil] [:w 2 1]]"),
        ("invoke", 0, "[[:r 1 nil]]"),
        ("invoke", 1, "[[:w 1 5]]"),
        ("ok", 1, "[[:w 1 5]]"),
        ("invoke", 0, "[[:w 3 1]]"),
        ("ok", 0, "[[:w 3 1]]"),
        ("ok", 0, "[[:r 1 nil] [:w 2 1]]"),
        ("invoke", 1, "[[:r 1 nil]]"),
        ("ok", 1, "[[:r 1 5]]"),
    )
    text = "".join(
        f"{{:type :{kind}, :process {process}, :f :txn, :value {value}, :index {index}}}\n"
        for index, (kind, process, value) in enumerate(lines)
    )
    assert judged(text, "rw-register").verdict is Verdict.UNKNOWN
    stale = text.replace("[[:r 1 5]]", "[[:r 1 nil]]")
    assert judged(stale, "rw-register").verdict is Verdict.INVALID


def completions(process: str, *values: str) -> str:
    """Return a history of completed transactions; ``process`` has a place for the number of each."""
    return "".join(
        f"{{:type :ok, {process.format(number)} :f :txn, :value {value}}}\n"
        for number, value in enumerate(values)
    )


@pytest.mark.parametrize("model", [name for name in MODELS if name.startswith("strong-session-")])
@pytest.mark.parametrize(
    ("workload", "write", "value"), [("list-append", "append", "[1]"), ("rw-register", "w", "1")]
)
def test_a_model_of_sessions_needs_processes_with_several_transactions(
    model: str, workload: str, write: str, value: str
) -> None:
    right = (f"[[:{write} 5 1]]", f"[[:r 5 {value}]]")
    wrong = (f"[[:{write} 5 1] [:r 6 {value}]]", f"[[:r 5 {value}] [:{write} 6 1]]")
    weaker = model.removeprefix("strong-session-")
    is_permitted = weaker == "read-uncommitted"
    for process in ("", ":process {}"):
        text = completions(process, *right)
        assert judged(text, workload, model).verdict == "unknown"
        assert judged(text, workload, weaker).verdict == "valid"
        assert judged(text, workload, f"strong-{weaker}").verdict == "valid"
        broken = judged(completions(process, *wrong), workload, model)
        assert broken.verdict == ("unknown" if is_permitted else "invalid")
    assert judged(completions(":process 0", *right), workload, model).verdict == "valid"


@pytest.mark.parametrize(
    ("processes", "verdict"), [("   ", "unknown"), ("012", "unknown"), ("011", "invalid")]
)
def test_a_session_guarantee_needs_processes_with_several_transactions(
    processes: str, verdict: str
) -> None:
    values = ("[[:w 5 1]]", "[[:r 5 1]]", "[[:r 5 nil]]")
    text = "".join(
        f"{{:type :ok {process.strip() and f':process {process} '}:f :txn :value {value}}}\n"
        for process, value in zip(processes, values, strict=True)
    )
    assert judged(text, "rw-register", "monotonic-reads").verdict == verdict
    assert judged(text, "rw-register", "serializable").verdict == "valid"


@pytest.mark.parametrize(
    ("answer", "fifo", "total"),
    [
        ("[1 2]", Verdict.VALID, Verdict.VALID),
        ("[2 1]", Verdict.INVALID, Verdict.VALID),
        ("#{2 1}", Verdict.UNKNOWN, Verdict.VALID),
    ],
)
def test_a_drain_states_the_order_in_which_it_dequeued(
    answer: str, fifo: Verdict, total: Verdict
) -> None:
    puts = [f"{kind} 0 enqueue {value}" for value in (1, 2) for kind in ("invoke", "ok")]
    text = history(*puts, "invoke 1 drain nil", f"ok 1 drain {answer}")
    assert verdict_of(text, "fifo-queue") is fifo
    assert verdict_of(text, "queue") is total


def test_own_appends_are_read_in_their_order() -> None:
    """A trace of all appends says otherwise, and is the only order of versions that there is."""
    for answer, verdict in (("[4 5]", Verdict.VALID), ("[5 4]", Verdict.INVALID)):
        text = history(
            "invoke 0 txn [[:append 1 4] [:append 1 5] [:r 1 nil]]",
            f"ok 0 txn [[:append 1 4] [:append 1 5] [:r 1 {answer}]]",
            "invoke 0 txn [[:append 2 6]]",
            "ok 0 txn [[:append 2 6]]",
            "invoke 1 txn [[:r 2 nil]]",
            "ok 1 txn [[:r 2 [6]]]",
        )
        assert judged(text, "list-append", "read-your-writes").verdict is verdict
