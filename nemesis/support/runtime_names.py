"""The names of our runtimes, for code that must not import the runtimes themselves."""

from __future__ import annotations

from typing import Final

LOCAL: Final = "local"
DOCKER: Final = "docker"
SIMULATION: Final = "simulation"
