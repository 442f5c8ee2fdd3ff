"""The names of the options that state what each key of registers keeps; ``key_orders`` says what follows from them."""

from __future__ import annotations

from typing import Final

SEQUENTIAL: Final = "sequential-keys"
LINEARIZABLE: Final = "linearizable-keys"
WFR: Final = "wfr-keys"
