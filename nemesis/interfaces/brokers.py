"""What a run may need of the brokers themselves, whatever runs them. A target states which of it its brokers lack."""

from __future__ import annotations


class AlterPartitionRequests:
    """Leaders propose ISRs to the controller by AlterPartition requests, instead of writing them into ZooKeeper."""


class BrokerSessions:
    """Sessions of brokers that the harness can end.

    It takes over a session in ZooKeeper, or holds the heartbeats that a session at a KRaft controller needs.
    """


class BrokerEpochs:
    """The harness sees in which epoch a broker is registered."""


class SteadyStart:
    """A broker whose ZooKeeper session ends while it starts goes on, instead of exiting."""


class DiskCommands:
    """A broker writes through a disk of the harness that fails on command, where it has no disk of its own."""


class Containers:
    """A broker runs in a container of the harness's image."""


class PlantedBugs:
    """A broker's process plants a bug of ``nemesis.mutants`` in itself before it starts."""
