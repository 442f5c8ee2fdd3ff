"""One line for a person who waits: on a terminal it changes in place, elsewhere plain lines come now and then."""

from __future__ import annotations

from time import monotonic
from types import TracebackType
from typing import Final, Self

from rich.console import Console, RenderableType
from rich.live import Live

PLAIN_INTERVAL_S: Final = 10.0
REFRESH_PER_S: Final = 4


class LiveDisplay:
    """A context manager; ``update`` may be called at any rate."""

    def __init__(self, console: Console, first: RenderableType = "") -> None:
        """``first`` is what a terminal shows until the first ``update``."""
        self._console = console
        self._first = first
        self._live: Live | None = None
        self._last_plain = monotonic()

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live = Live(
                self._first,
                console=self._console,
                refresh_per_second=REFRESH_PER_S,
                transient=True,
            )
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def update(self, live: RenderableType, plain: str, *, is_news: bool = False) -> None:
        """Show ``live`` on a terminal; else print ``plain`` when it is news, or the last line was a while ago."""
        if self._live is not None:
            self._live.update(live)
            return
        now = monotonic()
        if is_news or now - self._last_plain > PLAIN_INTERVAL_S:
            self._last_plain = now
            self._console.print(plain, highlight=False, markup=False, soft_wrap=True)
