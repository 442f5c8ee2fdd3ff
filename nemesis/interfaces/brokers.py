"""What a fault may need of the brokers themselves, whatever runs them. A target states which of it its brokers lack."""

from __future__ import annotations


class AlterPartitionRequests:
    """Leaders propose ISRs to the controller by AlterPartition requests, instead of writing them into ZooKeeper."""
