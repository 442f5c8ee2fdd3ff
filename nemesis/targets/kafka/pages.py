"""The tables of ``docs/kafka.md``: releases, defaults of broker properties, and which properties are judged.

``python -m nemesis.targets.kafka.pages`` writes them; a test compares them. A table stands between two comment lines
with its name; the rest of the page is written by hand.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from nemesis.checkers import CHECKERS
from nemesis.checkers.framework.property import Property
from nemesis.history.sources import EventSource
from nemesis.history.vocabulary.harness import CONTROL_TIMEOUT, SESSION_TIMEOUT
from nemesis.targets.kafka.properties import (
    BROKER_SESSION,
    DEFAULTS,
    HEARTBEAT,
    LEFT_OUT,
    PARTITION_COUNTS,
    PARTITIONS,
    QUORUM_LEFT_OUT,
    QUORUM_REFUSED,
    REPLICATION_FACTORS,
    REQUEST_TIMEOUT,
    ROLES,
    text_of,
)
from nemesis.targets.kafka.releases import RELEASES, Release
from nemesis.targets.kafka.target import KafkaTarget

PAGE: Final = Path(__file__).resolve().parents[3] / "docs" / "kafka.md"
CONFIGURATIONS: Final = {
    "ZooKeeper": ("3.9.1", False),
    "ZooKeeper, `--broker-logs`": ("3.9.1", True),
    "KRaft": ("4.1.1", False),
    "KRaft, `--broker-logs`": ("4.1.1", True),
}
"""By the title of a column, the release and whether what brokers log is judged."""


def releases_table() -> str:
    """Return the adjustments of each release, and whether brokers of it were started."""
    return _table(
        ("release", "run", "started", "metadata", "Maven artifact", "ZooKeeper client"),
        ((release.name, *_adjustments(release)) for release in RELEASES),
    )


def properties_table() -> str:
    """Return the properties that are not passed through, and the defaults that are not Kafka's."""
    return _table(
        ("property", "value"),
        [
            (f"`{REQUEST_TIMEOUT}`", f"that of `{CONTROL_TIMEOUT}`; another value is refused"),
            *(
                (f"`{name}`", "that of `default.replication.factor`")
                for name in REPLICATION_FACTORS
            ),
            ("`transaction.state.log.min.isr`", "that of `min.insync.replicas`"),
            *((f"`{name}`", f"`{PARTITIONS}` by default") for name in PARTITION_COUNTS),
            *((f"`{name}`", f"`{text_of(value)}` by default") for name, value in DEFAULTS.items()),
            (f"`{ROLES}`", "refused: it follows from the release"),
            *((f"`{name}`", f"left out: {reason}") for name, reason in LEFT_OUT.items()),
            (f"`{BROKER_SESSION}`", f"with KRaft, that of `{SESSION_TIMEOUT}` by default"),
            (f"`{HEARTBEAT}`", "with KRaft, a quarter of that by default"),
            *(
                (f"`{name}`", "with KRaft refused: Kafka 4 does not have it")
                for name in QUORUM_REFUSED
            ),
            *((f"`{name}`", "with KRaft left out") for name in sorted(QUORUM_LEFT_OUT)),
        ],
    )


def judged_table() -> str:
    """Return the properties that some configuration of Kafka shows, and how far each configuration shows them."""
    sources = {
        name: KafkaTarget(version, reads_broker_logs=reads_logs).observes
        for name, (version, reads_logs) in CONFIGURATIONS.items()
    }
    rows = (
        (f"`{name}`", *(_extent(decided, observed) for observed in sources.values()))
        for name, decided in CHECKERS.items()
    )
    return _table(("property", *sources), (row for row in rows if set(row[1:]) != {"no"}))


def replaced(page: str) -> str:
    """Return the page with its tables as they are now."""
    page = _with_table(page, "properties", properties_table())
    page = _with_table(page, "judged", judged_table())
    return _with_table(page, "releases", releases_table())


def _extent(decided: Property, observed: frozenset[EventSource]) -> str:
    if decided.not_observed_without(observed):
        return "no"
    return "in part" if decided.incomplete_without(observed) else "yes"


def _with_table(page: str, name: str, table: str) -> str:
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
    return re.sub(f"{begin}.*?{end}", lambda _: f"{begin}{table}{end}", page, flags=re.DOTALL)


def _adjustments(release: Release) -> tuple[str, str, str, str, str]:
    started = "no" if release.started is None else release.started
    metadata = "ZooKeeper" if release.uses_zookeeper else "KRaft"
    client = "its own" if release.zookeeper_client is None else release.zookeeper_client
    client = client if release.uses_zookeeper else "none"
    run = "yes" if release.unknown_request is None else f"no: lacks {release.unknown_request}"
    return run, started, metadata, f"`kafka_{release.scala}`", client


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    PAGE.write_text(replaced(PAGE.read_text("utf-8")), "utf-8")
