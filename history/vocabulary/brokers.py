"""Events about a broker as a whole: its start, its settings, its session, the requests that it handles.

Writer: a broker of the reference (process ``broker-N``, ``node`` N). It sets ``incarnation``.
"""

from __future__ import annotations

from nemesis.history.events import Kind, Word
from nemesis.history.vocabulary.declaring import PartitionView, View, declares


@declares(Kind.BROKER_STARTED, Kind.BROKER_RECONFIGURED)
class BrokerSettings(View, frozen=True, kw_only=True):
    """The settings that checks depend on: when a broker's process starts, and when they change while it runs.

    ``broker-started`` is the first event of an incarnation.
    """

    unclean_leader_election_enable: bool
    min_insync_replicas: int


@declares(Kind.BROKER_REGISTERED)
class BrokerRegistered(View, frozen=True, kw_only=True):
    """The broker has created its znode under `/brokers/ids`."""

    broker_epoch: int
    session: int
    zxid: int


@declares(Kind.SESSION_STATE)
class SessionState(View, frozen=True, kw_only=True):
    """The broker has noticed that the state of its ZooKeeper session has changed."""

    session: int
    session_state: Word


@declares(Kind.CONTROL_REQUEST_HANDLED)
class ControlRequestHandled(View, frozen=True, kw_only=True):
    """The broker has accepted or rejected a control request. Other processes see the effects only afterwards."""

    api: Word
    peer: int
    """The id of the controller, as the request carries it."""
    controller_epoch: int
    """The controller epoch that the request carries."""
    broker_epoch: int
    """The broker epoch that the request carries."""
    error: Word
    """`NONE` if the broker accepted the request."""


@declares(Kind.CONTROL_REQUEST_ANSWERED)
class ControlRequestAnswered(PartitionView, frozen=True, kw_only=True):
    """The broker is about to answer a control request that it accepted: its answer for one partition.

    Not traced, because it changes nothing: a LeaderAndIsr state that is refused with `STALE_CONTROLLER_EPOCH`, and an
    UpdateMetadata state that the broker's metadata had before.
    """

    api: Word
    error: Word
    """The answer for the partition. UpdateMetadata has one answer for all partitions, which is `NONE`."""
    leader: int | None = None
    """The leader that the request names; −2 if the partition is being deleted. Unset in StopReplica."""
    leader_epoch: int
    """The leader epoch that the request names."""
    partition_epoch: int | None = None
    """The partition epoch that the request names. Unset in StopReplica."""
    isr: list[int] | None = None
    """The ISR that the request names. Unset in StopReplica, and in histories of older versions."""
    step: Word | None = None
    """What StopReplica asks for: `stop` if the log is to stay, `delete` if not."""


@declares(Kind.METADATA_UPDATED)
class MetadataUpdated(View, frozen=True, kw_only=True):
    """The broker has applied an UpdateMetadata request."""

    controller_epoch: int
    peer: int
    """The id of the controller."""
    count: int
    """The number of partitions in the request."""
    live: list[int] | None = None
    """The live brokers that the broker knows from then on: those of the request, unless it is late and has an older
    state of a partition. Histories of older versions lack them."""


@declares(Kind.PARTITION_METADATA)
class PartitionMetadata(PartitionView, frozen=True, kw_only=True):
    """An UpdateMetadata request has changed what the broker's metadata cache has of a partition."""

    leader: int
    leader_epoch: int
    partition_epoch: int
    controller_epoch: int
    """The controller epoch in which the state was written."""
    isr: list[int] | None = None
    """Histories of older versions lack it, and `replicas`."""
    replicas: list[int] | None = None


@declares(Kind.LOG_DIR_FAILED)
class LogDirFailed(View, frozen=True, kw_only=True):
    """The medium of a log directory has refused the broker a call, for the first time in this incarnation.

    The directory goes offline until the broker starts again.
    """

    log_dir: Word
    error: Word
    """What the broker was doing, and the error of the medium."""


@declares(Kind.JOB_STARTED)
class JobStarted(View, frozen=True, kw_only=True):
    """The broker starts a turn of work that it repeats.

    Of the threads of the log cleaner: a thread has nothing to compact, and waits for ``log.cleaner.backoff.ms`` now.
    """

    step: Word
    """The job, by the name that Kafka gives to it: `kafka-log-retention`, `isr-expiration`, …"""


@declares(Kind.EXCEPTIONS_WATCHED)
class ExceptionsWatched(View, frozen=True, kw_only=True):
    """The broker has started and records its unforeseen exceptions. Brokers of older versions do not record them."""


@declares(Kind.UNFORESEEN_EXCEPTION)
class UnforeseenException(View, frozen=True, kw_only=True):
    """The broker has caught an exception that none of its code expects, or ends because of one."""

    error: Word
    """Type and text of the exception, and the innermost function of the broker that raised it or let it pass."""
