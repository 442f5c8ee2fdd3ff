"""The sources of a history: where the harness gets events from.

A target declares which sources it has (``Target.observes``), a run stores them (``RunInfo.observes``), and each
property names the sources that decide it (``Property.decided_from``). A source is observed as a whole or not at all:
traces of some brokers, or of some kinds, would look like brokers that did nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from nemesis.history.events import Kind


class EventSource(StrEnum):
    """A source of events, by the name that ``run.json`` and ``results.json`` have."""

    METADATA_LOG = "metadata-log"
    """ZooKeeper's transaction log: every committed change of metadata."""
    QUORUM_LOG = "quorum-log"
    """The metadata logs of a KRaft quorum's voters. It stands in for ``METADATA_LOG`` where a property says so."""
    CLIENTS = "clients"
    """The operations of clients, with their completions."""
    TRACES = "traces"
    """What brokers and controllers record of themselves."""
    BROKER_LOGS = "broker-logs"
    """What Kafka brokers log of their replicas. It stands in for ``TRACES`` where a property says so."""
    FAULTS = "faults"
    """What the nemesis did, and what was measured of it."""
    HARNESS = "harness"
    """Phases, convergence checks, time-outs, and how late harness and machine were."""
    END_STATE = "end-state"
    """What ZooKeeper and the brokers report when the run has ended."""
    REPLICA_OFFSETS = "replica-offsets"
    """The offsets that each replica answers when the run has ended."""
    REPLICA_SAMPLES = "replica-samples"
    """Offsets that replicas answer during the run, now and then: between two samples nothing is known."""
    QUORUM_SAMPLES = "quorum-samples"
    """What leaders of a KRaft quorum answer about it during the run, now and then."""
    STORED_LOGS = "stored-logs"
    """The files of the replicas' logs, read once the brokers are stopped."""

    @property
    def label(self) -> str:
        """What the source is, for people."""
        return _LABELS[self]


OF_QUORUM: Final = frozenset({EventSource.QUORUM_LOG, EventSource.QUORUM_SAMPLES})
"""The sources that only a cluster with KRaft has."""
JUDGED: Final = "judged"
"""The value of a target's option that has the name of a source: the source is judged, too."""
STAND_INS: Final = MappingProxyType(
    {
        EventSource.QUORUM_LOG: EventSource.METADATA_LOG,
        EventSource.BROKER_LOGS: EventSource.TRACES,
    }
)
"""Sources that give events of the same kinds as another one, which they stand in for where a property says so."""
ALL_SOURCES: Final = tuple(
    source for source in EventSource if source not in {*OF_QUORUM, *STAND_INS}
)
"""The sources that a cluster with ZooKeeper can have."""

_LABELS: Final = MappingProxyType(
    {
        EventSource.METADATA_LOG: "ZooKeeper's transaction log",
        EventSource.QUORUM_LOG: "the metadata logs of the quorum",
        EventSource.CLIENTS: "operations of clients",
        EventSource.TRACES: "traces of brokers",
        EventSource.BROKER_LOGS: "what Kafka brokers log of their replicas",
        EventSource.FAULTS: "records of faults",
        EventSource.HARNESS: "records of the harness",
        EventSource.END_STATE: "the state at the end",
        EventSource.REPLICA_OFFSETS: "offsets of replicas at rest",
        EventSource.REPLICA_SAMPLES: "samples of replicas",
        EventSource.QUORUM_SAMPLES: "answers of the quorum's leaders",
        EventSource.STORED_LOGS: "the files of the logs",
    }
)

_KINDS: Final[Mapping[EventSource, tuple[Kind, ...]]] = MappingProxyType(
    {
        EventSource.METADATA_LOG: (
            Kind.ZNODE,
            Kind.ZNODE_REFUSED,
            Kind.SESSION_CREATED,
            Kind.SESSION_CLOSED,
        ),
        EventSource.CLIENTS: (
            Kind.INVOKE,
            Kind.OK,
            Kind.FAIL,
            Kind.INFO,
            Kind.FINAL_READ,
            Kind.FETCH_RECEIVED,
            Kind.TRANSACTION_BEGUN,
            Kind.ASSIGNED,
            Kind.REVOKED,
        ),
        EventSource.FAULTS: (
            Kind.FAULT_INVOKE,
            Kind.FAULT_APPLIED,
            Kind.FAULT_SKIPPED,
            Kind.FAULT_HEALED,
        ),
        EventSource.HARNESS: (
            Kind.PHASE,
            Kind.CONVERGENCE,
            Kind.HARNESS_LAG,
            Kind.MACHINE_LOAD,
            Kind.TIMEOUT_SETTING,
            Kind.BROKER_PROPERTY,
        ),
        EventSource.END_STATE: (Kind.END_STATE,),
        EventSource.REPLICA_OFFSETS: (Kind.REPLICA_OFFSETS,),
        EventSource.REPLICA_SAMPLES: (Kind.REPLICA_SAMPLE,),
        EventSource.QUORUM_SAMPLES: (Kind.QUORUM_SAMPLE,),
        EventSource.STORED_LOGS: (
            Kind.STORED_LOG,
            Kind.STORED_SEGMENT,
            Kind.STORED_BATCH,
            Kind.STORED_MARKER,
            Kind.STORED_INDEX_ENTRY,
            Kind.STORED_EPOCH,
            Kind.STORED_SNAPSHOT,
            Kind.STORED_PRODUCER,
        ),
    }
)
"""The kinds of events of each source; all others are traces."""

_SOURCES: Final[Mapping[str, EventSource]] = MappingProxyType(
    {kind: source for source in _KINDS for kind in _KINDS[source]}
)


def source_of(kind: str) -> EventSource:
    """Return the source of the events of a kind; kinds that nemesis does not declare count as traces."""
    return _SOURCES.get(kind, EventSource.TRACES)
