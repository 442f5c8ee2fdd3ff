"""The end of this process."""

from __future__ import annotations

import logging
import os
from typing import NoReturn


def halt(status: int) -> NoReturn:
    """End at once: nothing is closed, no session ended, as with Kafka's ``Exit.halt``. What was logged is written."""
    logging.shutdown()
    os._exit(status)
