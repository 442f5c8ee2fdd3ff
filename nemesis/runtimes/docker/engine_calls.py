"""Calls to the Docker engine from the event loop: each in a thread, none broken off, its errors in one sentence."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeVar

import requests
from docker.errors import APIError, DockerException

from nemesis.interfaces.errors import RuntimeFailure

T = TypeVar("T")

FAILURES = (DockerException, requests.exceptions.RequestException, OSError)


class EngineRefused(RuntimeFailure):
    """The engine did not do what it was asked to, or did not answer; says what and why."""


async def ask(label: str, call: Callable[..., T], *arguments: Any, **options: Any) -> T:
    """Return what the engine answers; raises ``EngineRefused`` with "the Docker engine cannot ``what``" and why."""
    try:
        return await unbroken(call, *arguments, **options)
    except FAILURES as error:
        raise EngineRefused(f"the Docker engine cannot {label}: {reason(error)}") from error


async def unbroken(call: Callable[..., T], *arguments: Any, **options: Any) -> T:
    """Return what a call that blocks returns, or raise what it raises.

    Cancelled, it waits for the end of the call first: what it makes must be there when it is looked for to be undone.
    """
    work = asyncio.ensure_future(asyncio.to_thread(call, *arguments, **options))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        await asyncio.wait([work])
        raise


async def together(calls: Iterable[Awaitable[T]]) -> list[T]:
    """Wait for all of them, whatever comes of one; then return their results or raise the first error."""
    results = await asyncio.gather(*calls, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return [result for result in results if not isinstance(result, BaseException)]


def reason(error: BaseException) -> str:
    """Return the engine's own words in one line, without its stack of wrapped errors."""
    text = error.explanation if isinstance(error, APIError) and error.explanation else str(error)
    return " ".join(str(text).split()) or type(error).__name__
