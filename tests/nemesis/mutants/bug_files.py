"""The file of `docs/adding.md` that plants a bug."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

PAGE: Final = Path(__file__).parents[3] / "docs" / "adding.md"
NAME: Final = "elected-in-the-old-epoch"
BUG: Final = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)[0]


def write_bug(folder: Path, text: str = BUG) -> Path:
    """Write a file that plants a bug and return its path."""
    path = folder / "bug.py"
    path.write_text(text)
    return path
