"""``python -m tests.docs.compare_names DIRECTORY``: are all names of the source documents in the Kafka ledger?

The documents are not part of the repository, so no test can ask. The files of the directory are taken in the order of
their names, as documents 0, 1, 2, ... Prints one line per name that the ledger lacks; exits with 1 if there is one.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.docs import ledger
from tests.docs.source_names import names_in

END_OF_TEXT: Final = "\n发表于"
"""Where a web page's own text ends ("published on"); what follows are teasers of other pages."""


def missing(directory: Path) -> Iterator[str]:
    """Yield one sentence for each name of a document that the ledger does not list."""
    known = ledger.read(ledger.LEDGER.read_text("utf-8"))
    files = sorted(path for path in directory.iterdir() if path.is_file())
    if len(files) != len(known.documents):
        raise ValueError(
            f"{directory}: expected {len(known.documents)} documents, got {len(files)} files"
        )
    for number, file in enumerate(files):
        text = file.read_text("utf-8").partition(END_OF_TEXT)[0]
        listed = set(known.named[number].split())
        for name in sorted(names_in(text) - listed):
            yield f"document {number} ({file.name}) names {name}, the ledger does not"


if __name__ == "__main__":
    lines = list(missing(Path(sys.argv[1])))
    print(*lines, sep="\n", end="\n" if lines else "")
    sys.exit(1 if lines else 0)
