"""A plugin of pytest that records which functions of the reference and the workloads each test calls.

``pytest -p tests.docs.calls`` writes ``{node id: [[file, qualified name], ...]}`` as JSON into the file that the
variable ``CALLS_FILE`` names. Parameters are dropped from node ids. Limit: only calls in the own process are seen.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final

import pytest

ROOT: Final = Path(__file__).parents[2]
RECORDED: Final = (ROOT / "reference", ROOT / "workloads")
"""Where the ledger's places are: our ConsumerCoordinator is a client."""
_calls: Final[dict[str, set[tuple[str, str]]]] = defaultdict(set)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Record the calls of the test, its fixtures included."""
    codes: set[CodeType] = set()

    def profile(frame: FrameType, event: str, _argument: Any) -> None:
        if event == "call":
            codes.add(frame.f_code)

    sys.setprofile(profile)
    threading.setprofile(profile)
    try:
        yield
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
        _calls[item.nodeid.partition("[")[0]] |= set(_recorded(codes))


def _recorded(codes: set[CodeType]) -> Iterator[tuple[str, str]]:
    # ``nemesis.reference`` is a link to the folder, so the file of a code object has two spellings.
    for code in codes:
        file = Path(os.path.realpath(code.co_filename))
        if any(map(file.is_relative_to, RECORDED)):
            yield str(file.relative_to(ROOT)), code.co_qualname


def pytest_sessionfinish() -> None:
    """Write what was recorded."""
    collected = {node: sorted(calls) for node, calls in _calls.items()}
    Path(os.environ["CALLS_FILE"]).write_text(json.dumps(collected), "utf-8")
