"""``nemesis doctor``: what is missing on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from nemesis.cli.console import out, say_json
from nemesis.cli.options import Json, Store
from nemesis.running import doctor
from nemesis.support.errors import EXIT_USAGE


def examine(store: Store = Path("store"), as_json: Json = False) -> None:
    """Say what is missing on this machine, and how to get it."""
    checks = doctor.examine(store)
    if as_json:
        say_json([_check_as_json(item) for item in checks])
    else:
        for item in checks:
            mark = "ok" if item.ok else "MISSING" if item.is_required else "note"
            cure = f": {item.cure}" if item.cure else ""
            out.print(f"{mark:<8} {item.name:<18} {item.detail}{cure}")
    if any(item.is_required and not item.ok for item in checks):
        raise typer.Exit(EXIT_USAGE)


def _check_as_json(item: doctor.Check) -> dict[str, Any]:
    return {
        "name": item.name,
        "ok": item.ok,
        "detail": item.detail,
        "cure": item.cure,
        "required": item.is_required,
    }
