"""What a broker tells about itself: one event for every step that a property speaks about.

``Tracer.event`` is called after the effect and before anybody else can see it (before the reply is sent, before
the request leaves). It costs one JSON encoding and one ``write()``. The vocabulary is ``nemesis.history.vocabulary``.
"""

from __future__ import annotations

from typing import Any, Protocol

from nemesis.history.events import ABORT, COMMIT, Kind
from nemesis.history.recorder import Recorder

__all__ = ["ABORT", "COMMIT", "Kind", "NullTracer", "RecorderTracer", "Tracer"]


class Tracer(Protocol):
    def event(self, kind: Kind, /, **columns: Any) -> None:
        """Record one event; ``columns`` are those that ``nemesis.history.vocabulary`` declares for the kind."""


class RecorderTracer:
    """Writes every event to the broker's trace."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def event(self, kind: Kind, /, **columns: Any) -> None:
        self._recorder.write(kind, columns)


class NullTracer:
    """A broker without a trace (``trace.file`` unset): nothing is recorded."""

    def event(self, kind: Kind, /, **columns: Any) -> None:
        del kind, columns
