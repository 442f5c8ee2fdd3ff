"""What a run may need of the brokers themselves, whatever runs them. A target states which of it its brokers lack."""

from __future__ import annotations


class AlterPartitionRequests:
    """Leaders propose ISRs to the controller by AlterPartition requests, instead of writing them into ZooKeeper."""


class SteadyStart:
    """A broker whose ZooKeeper session ends while it starts goes on, instead of exiting."""


class PlantedBugs:
    """A broker's process plants a bug of ``nemesis.mutants`` in itself before it starts."""
