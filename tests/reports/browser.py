"""Opening a page in a headless browser that reaches for nothing outside."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.reports.pages import Page

CHROMIUM: Final = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)
_DARK: Final = "--blink-settings=preferredColorScheme=0"


@dataclass(frozen=True)
class Window:
    width_px: int = 1280
    is_dark: bool = False


def browse(file: Path, profile: Path, window: Window = Window()) -> tuple[Page, list[str]]:
    """Open a page, let its scripts finish; return the resulting DOM and the console's lines."""
    assert CHROMIUM is not None
    command = [
        CHROMIUM,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-background-networking",
        f"--window-size={window.width_px},2000",
        "--virtual-time-budget=20000",
        "--enable-logging=stderr",
        f"--user-data-dir={profile}",
        *([_DARK] if window.is_dark else []),
        "--dump-dom",
        file.as_uri(),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    return Page.of(done.stdout), console
