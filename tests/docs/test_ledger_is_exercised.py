"""Every test that the Kafka ledger cites runs the place that it is cited for.

Left out: tests that start processes (their calls are not seen here), and places without code of their own (constants,
fields, classes that only carry values).
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs import ledger
from tests.docs.ledger import ROOT, Entry


def has_code(where: str) -> bool:
    """Return whether the place is a function, a method, or a class with methods that are not generated."""
    path, _, symbol = where.partition("::")
    node: ast.stmt | ast.Module = ast.parse((ROOT / path).read_text("utf-8"))
    for name in symbol.split("::"):
        body = node.body if isinstance(node, ast.Module | ast.ClassDef) else []
        named = (child for child in body if getattr(child, "name", None) == name)
        node = next(named, ast.Pass())
    if not isinstance(node, ast.ClassDef):
        return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    is_protocol = any(isinstance(base, ast.Name) and base.id == "Protocol" for base in node.bases)
    methods = {
        child.name
        for child in node.body
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    return not is_protocol and not methods <= {"__str__", "__post_init__"}


def is_exercised(entry: Entry, calls: list[list[str]]) -> bool:
    """Return whether one of the calls is a call of the entry's place."""
    assert entry.where is not None
    path, _, symbol = entry.where.partition("::")
    name = symbol.replace("::", ".")
    return any(
        file == path and (called == name or called.startswith(f"{name}.")) for file, called in calls
    )


@pytest.mark.nightly
@pytest.mark.timeout(1200)
def test_every_cited_test_runs_the_place_that_it_is_cited_for(tmp_path: Path) -> None:
    known = ledger.read(ledger.LEDGER.read_text("utf-8"))
    entries = [
        entry
        for entry in known.entries
        if entry.test is not None
        and not entry.test.startswith("tests/e2e/")
        and entry.where is not None
        and has_code(entry.where)
    ]
    assert len(entries) > 200
    cited = sorted({entry.test for entry in entries if entry.test is not None})
    calls_file = tmp_path / "calls.json"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.docs.calls", *cited]
    environment = os.environ | {"CALLS_FILE": str(calls_file)}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-2000:]
    calls = json.loads(calls_file.read_text("utf-8"))
    idle = [
        f"{entry.name}: {entry.test} does not run {entry.where}"
        for entry in entries
        if not is_exercised(entry, calls.get(entry.test, []))
    ]
    assert idle == []


def test_a_protocol_and_a_class_of_values_have_no_code() -> None:
    assert not has_code("reference/server/kafka_request_handler.py::RequestHandler")
    assert not has_code("reference/model.py::LeaderAndIsr")
    assert not has_code("reference/model.py::NO_LEADER")
    assert has_code("reference/controller/election.py::offline_partition_leader_election")
    assert has_code("reference/cluster/partition.py::Partition::make_leader")
    assert has_code("reference/cluster/partition.py::Partition")


def test_a_test_that_calls_something_else_does_not_exercise_the_place() -> None:
    entry = Entry("X", (0,), "built", where="reference/a.py::C::m", test="tests/t.py::test_c")
    assert is_exercised(entry, [["reference/a.py", "C.m"]])
    assert is_exercised(entry, [["reference/a.py", "C.m.<locals>.f"]])
    assert not is_exercised(entry, [["reference/a.py", "C.mm"], ["reference/b.py", "C.m"]])
