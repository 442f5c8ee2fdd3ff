"""What is run: ``base`` says what a runtime needs to know of a target; ``reference``, ``kafka`` and ``mixed`` are the
targets.

``TARGETS`` holds them by the name that ``--target`` takes.
"""

from __future__ import annotations

from typing import Final

from nemesis.registry import Registry, by_name
from nemesis.targets.base import Target
from nemesis.targets.kafka.target import KafkaTarget
from nemesis.targets.mixed import MixedTarget
from nemesis.targets.reference import ReferenceTarget

__all__ = ["TARGETS", "Target"]

TARGETS: Final[Registry[Target]] = Registry(
    "target", by_name((ReferenceTarget(), KafkaTarget(), MixedTarget()))
)
