"""What is run: ``base`` says what a runtime needs to know of a target; one module per target.

``TARGETS`` holds them by the name that ``--target`` takes.
"""

from __future__ import annotations

from typing import Final

from nemesis.registry import Registry, by_name
from nemesis.targets.base import Target
from nemesis.targets.reference import ReferenceTarget

__all__ = ["TARGETS", "Target"]

TARGETS: Final[Registry[Target]] = Registry("target", by_name((ReferenceTarget(),)))
