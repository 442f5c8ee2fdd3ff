"""``WallClocks``: those of the nodes of one run, each set by itself and read back."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

from nemesis.interfaces.errors import FaultUnsupported, RuntimeFailure
from nemesis.interfaces.unsupported import Unsupported
from nemesis.runtimes.clock_control import control_page, probe
from nemesis.runtimes.clock_control.control_page import ClockSetting
from nemesis.runtimes.clock_control.library import environment, wall_clock_library
from nemesis.support.errors import MissingRequirement

DRIFT_DIGITS: Final = 5
"""Of a measured drift; the two looks at the clock are exact to a microsecond in a tenth of a second."""


class WallClocks:
    """The pages are in the run's directory: the clock of a node outlives its processes."""

    def __init__(self, run_directory: Path) -> None:
        """Without the library the clocks are right and stay so: ``unsupported`` has the reason."""
        self._directory = run_directory / control_page.DIRECTORY
        self._library: Path | None = None
        self.unsupported: Unsupported | None = None
        try:
            self._library = wall_clock_library()
        except MissingRequirement as error:
            self.unsupported = Unsupported(str(error))

    def create(self, nodes: Iterable[str]) -> None:
        """Give these nodes clocks that are right; raises ``RuntimeFailure``."""
        for node in nodes:
            try:
                control_page.create(self._page(node))
            except OSError as error:
                raise RuntimeFailure(f"the clock of {node} cannot be made: {error}") from None

    def environment(self, node: str) -> dict[str, str]:
        """Return what gives a program of this machine the node's clock."""
        return {} if self._library is None else environment(self._library, self._page(node))

    async def skew(self, node: str, pid: int, *, offset_ms: int, drift: float) -> dict[str, Any]:
        """Set the clock of the node whose main process is ``pid``; return what it then says.

        ``offset_ms`` and ``drift`` are measured by a process of its own, and told as they were when the clock was set.
        ``preloaded`` is whether the node's main process has the library and the page; without that the rest is not
        told, because it would say nothing about the node. Raises ``RuntimeFailure``.
        """
        if self._library is None:
            raise FaultUnsupported(f"the wall clock of {node} cannot be moved: {self._reason}")
        page, since = self._page(node), probe.look()
        try:
            control_page.write(page, ClockSetting(since.wall_ns, offset_ms, drift))
        except OSError as error:
            raise RuntimeFailure(f"the clock of {node} cannot be set: {error}") from None
        if not control_page.is_mapped(page, pid):
            return {"preloaded": False}
        result = await probe.ask(self._library, page)
        return {
            "preloaded": True,
            "offset_ms": round(result.offset_ms_at(since.at_ns)),
            "drift": round(result.drift, DRIFT_DIGITS) + 0.0,  # never minus zero
        }

    @property
    def _reason(self) -> str:
        return "" if self.unsupported is None else self.unsupported.reason

    def _page(self, node: str) -> Path:
        return self._directory / node


class NodeClocks:
    """Implements ``nemesis.interfaces.clocks.Clocks`` for real processes."""

    def __init__(self, clocks: WallClocks, pid_of: Callable[[str], int]) -> None:
        """``pid_of`` gives the process id of a node's main process, and raises ``RuntimeFailure`` without one."""
        self._clocks = clocks
        self._pid_of = pid_of

    async def skew(self, node: str, *, offset_ms: int, drift: float) -> dict[str, Any]:
        """Return ``{"preloaded": True, "offset_ms": ..., "drift": ...}``, measured."""
        return await self._clocks.skew(node, self._pid_of(node), offset_ms=offset_ms, drift=drift)

    async def correct(self, node: str) -> dict[str, Any]:
        return await self.skew(node, offset_ms=0, drift=0.0)
