"""Answers that may have to be waited for."""

from __future__ import annotations

from inspect import isawaitable
from typing import Any


async def answered(answer: Any) -> Any:
    """What a handler returned, or what it will return."""
    return await answer if isawaitable(answer) else answer
