"""A metadata log of a real KRaft quorum, for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Final

REAL: Final = Path(__file__).parent / "kafka-4.1.1.log.gz"
"""That of a voter of three, of Kafka 4.1.1: offsets 0 to 329, epochs 1 to 5."""
