"""Compiles the kernels that judge large external histories: ``python -m nemesis.cli.kernel_cache``.

numba stores what it has compiled beside the modules. Without this, the first large history waits for it.
"""

from __future__ import annotations

import contextlib
import io
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Final

from nemesis.cli.app import call
from nemesis.history.foreign.plain.histories import WORTH_COMPILED

_LINE_BYTES: Final = 50
"""At least, of each line that is written here."""
_KEYS: Final = 100
_CLIENTS: Final = 4


def _object(number: int) -> tuple[str, str, str]:
    """Write each key, then read it again and again."""
    key = number % _KEYS
    if number < _KEYS:
        return ":write", f"[{key} 0]", f"[{key} 0]"
    return ":read", f"[{key} nil]", f"[{key} 0]"


def _lists(number: int) -> tuple[str, str, str]:
    """Append to a key and read an earlier one."""
    earlier = _earlier(number)
    append = f"[:append {number} 1]"
    return ":txn", f"[{append} [:r {earlier} nil]]", f"[{append} [:r {earlier} [1]]]"


def _registers(number: int) -> tuple[str, str, str]:
    """Write a key and read an earlier one."""
    earlier = _earlier(number)
    write = f"[:w {number} 1]"
    return ":txn", f"[{write} [:r {earlier} nil]]", f"[{write} [:r {earlier} 1]]"


def _earlier(number: int) -> int:
    return max(number - 2 * _CLIENTS, number % _CLIENTS)


WORKLOADS: Final = MappingProxyType(
    {
        "register": _object,
        "cas-register": _object,
        "list-append": _lists,
        "rw-register": _registers,
    }
)
"""By workload the operation of a number: function, value asked for, value answered."""


def history(operation: Callable[[int], tuple[str, str, str]]) -> Iterator[str]:
    """Yield the lines of a correct history that is large enough for the kernels."""
    for first in range(0, WORTH_COMPILED // _LINE_BYTES // 2, _CLIENTS):
        for step, kind in enumerate((":invoke", ":ok")):
            for client in range(_CLIENTS):
                f, asked, answered = operation(first + client)
                index = 2 * first + step * _CLIENTS + client
                yield (
                    f"{{:type {kind}, :f {f}, :value {answered if step else asked}, :process {client}, "
                    f":time {1000 * index}, :index {index}}}\n"
                )


def main() -> int:
    """Judge a history of each workload; return the first exit code that is not 0."""
    if find_spec("numba") is None:
        return 0
    with tempfile.TemporaryDirectory() as directory:
        for workload, operation in WORKLOADS.items():
            file = Path(directory) / f"{workload}.edn"
            file.write_text("".join(history(operation)), "utf-8")
            with contextlib.redirect_stdout(io.StringIO()):
                code = call(["check", str(file), "--workload", workload, "--store", directory])
            if code:
                return code
    return 0


if __name__ == "__main__":
    sys.exit(main())
