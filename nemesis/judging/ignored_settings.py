"""Settings of brokers that were written to ZooKeeper and that reference brokers do not know, and ignore.

In a mixed cluster Kafka's brokers follow them and the reference's do not, so the report lists them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from nemesis.checkers.framework.segment import Segment
from nemesis.history.events import Event, Kind
from nemesis.history.reader import History

REFERENCES: Final = frozenset({"reference", "mixed"})
"""The targets with reference brokers."""
_BROKERS: Final = "/config/brokers/"
_COLUMNS: Final = ("time", "process", "kind", "seq", "path", "data")


def ignored_settings(target: str, history: History) -> list[str]:
    """Return a sentence for each znode below ``/config/brokers`` with settings that reference brokers ignore."""
    if target not in REFERENCES:
        return []
    segments = (Segment.of(group, list(_COLUMNS)) for group in history.row_groups)
    return sentences(
        event
        for segment in segments
        for _, event in segment.only({Kind.ZNODE}).events("path", "data")
        if (event.path or "").startswith(_BROKERS)
    )


def sentences(written: Iterable[Event]) -> list[str]:
    """Return the sentences for these writes; a setting counts that was there at any time, with its last value."""
    ignored: dict[str, dict[str, str]] = {}
    for event in written:
        path = event.path or ""
        for name, value in _settings(event.data).items():
            if not _is_known(name):
                ignored.setdefault(path, {})[name] = str(value)
    return [
        f"Reference brokers ignore these settings of {path}: "
        f"{', '.join(f'{name}={value}' for name, value in sorted(settings.items()))}."
        for path, settings in sorted(ignored.items())
    ]


def _is_known(name: str) -> bool:
    """Whether reference brokers honour the setting. Most runs have none, and import no broker for it."""
    from nemesis.reference.server.dynamic_broker_config import DYNAMIC_CONFIGS

    return name in DYNAMIC_CONFIGS


def _settings(data: str | None) -> dict[str, Any]:
    try:
        decoded: Any = msgspec.json.decode(data or "null")
    except msgspec.DecodeError:
        return {}
    config = decoded.get("config") if isinstance(decoded, dict) else None
    return config if isinstance(config, dict) else {}
