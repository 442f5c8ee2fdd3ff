"""The settings of topics and brokers that were written to ZooKeeper, and which of them counted in the whole run.

ZooKeeper's log has no times that could be compared with brokers' times. So a value counts in the whole run only if it
is the only one: it was written before its topic was created, and neither changed nor deleted since. A log that a broker
still has after its topic and the settings were deleted has the broker's settings. The settings of brokers can be
changed in ``/config/brokers`` (KIP-226).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from nemesis.checkers import znodes
from nemesis.checkers.framework.event_list import Row
from nemesis.checkers.znodes import BROKER_CONFIGS, TOPIC_CONFIGS
from nemesis.history.events import Event

COLUMNS: Final = ("zxid", "zk_op", "path", "data")
_DELETE: Final = "delete"

Overrides = Mapping[str, Any]
"""Settings by name."""


def is_about_settings(event: Event) -> bool:
    """Whether a change of a znode matters here: one of settings, or of the topic that has them."""
    path = event.path or ""
    return path.startswith((TOPIC_CONFIGS, BROKER_CONFIGS)) or _topic(path) is not None


def possible_settings(rows: Sequence[Row]) -> dict[str, list[Overrides] | None]:
    """Return the settings of its own that each topic had, one after the other; None if some cannot be read."""
    possible: dict[str, list[Overrides] | None] = {}
    existing: set[str] = set()
    for _, event in _in_order(rows):
        path = event.path or ""
        is_deleted = event.zk_op == _DELETE
        if (topic := _topic(path)) is not None:
            existing = existing - {topic} if is_deleted else existing | {topic}
        elif path.startswith(TOPIC_CONFIGS):
            topic = path.removeprefix(TOPIC_CONFIGS)
            known = possible.setdefault(topic, [{}] if topic in existing else [])
            written = {} if is_deleted else _overrides(event.data)
            if known is None or written is None:
                possible[topic] = None
            else:
                known.append(written)
    return possible


def settings_of(rows: Sequence[Row]) -> dict[str, Overrides | None]:
    """Return the own settings of topics; None if they were not the same in the whole run, or cannot be read."""
    return {
        topic: known[0] if known is not None and len(known) == 1 else None
        for topic, known in possible_settings(rows).items()
    }


def broker_settings(rows: Sequence[Row]) -> dict[str, list[str]]:
    """Return the values of brokers' settings, by name, that were written while the brokers ran."""
    values: defaultdict[str, list[str]] = defaultdict(list)
    for _, event in _in_order(rows):
        if (event.path or "").startswith(BROKER_CONFIGS):
            for name, value in (_overrides(event.data) or {}).items():
                values[name].append(str(value))
    return dict(values)


def _in_order(rows: Sequence[Row]) -> Iterator[Row]:
    """Yield the changes in ZooKeeper's order; of one transaction, settings before the topics that have them."""
    changed = znodes.changes(rows)
    yield from sorted(changed, key=lambda item: (item[1].zxid or 0, _is_topic(item[1])))


def _is_topic(event: Event) -> bool:
    return _topic(event.path or "") is not None


def _topic(path: str) -> str | None:
    """Return the topic that a path stands for; None if it stands for something else."""
    name = path.removeprefix(znodes.TOPICS)
    return name if name != path and "/" not in name else None


def _overrides(data: str | None) -> Overrides | None:
    overrides = znodes.object_in(data).get("config")
    return overrides if isinstance(overrides, dict) else None
