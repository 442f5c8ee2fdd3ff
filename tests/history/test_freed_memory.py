import subprocess
import sys

import pytest

ARRAYS = """
import resource
import numpy as np
from nemesis.history.freed_memory import keep_freed_memory

def pages_cleared():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

def row_group():
    return [np.ones(65_536) for _ in range(20)]

if {kept}:
    keep_freed_memory()
row_group()
before = pages_cleared()
for _ in range(10):
    row_group()
print(pages_cleared() - before)
"""


def pages_cleared(*, kept: bool) -> int:
    """How often the kernel has to clear a page for the arrays of ten row groups."""
    command = [sys.executable, "-c", ARRAYS.format(kept=kept)]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="GNU's C library")
def test_the_arrays_of_a_row_group_get_the_memory_of_the_last_one() -> None:
    assert pages_cleared(kept=True) < 100 < 10_000 < pages_cleared(kept=False)
