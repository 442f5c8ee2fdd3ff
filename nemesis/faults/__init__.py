"""What is broken, whom it strikes, and how that is measured.

* ``base``        what a fault is: aim, apply, undo, verify (start here)
* ``partition``, ``kill``, ``session``, ``stall``, ``pause``, ``restart``,
  ``graceful_restart``, ``rolling_restart``, ``add_broker``, ``remove_broker``,
  ``delay_control``, ``delay_alter_partition``, ``delete_controller``, ``elect_preferred``,
  ``reassign_partitions``, ``slow_zookeeper``   the faults of every runtime
* ``churn``   sessions that are ended while a fault is in force
* ``administrator``, ``moves``, ``departure``   replicas that are moved for the sake of a fault
* ``held_requests``   requests of one kind that are held at the links; ``heartbeats`` those that keep a KRaft session
* ``clients``   client processes that are killed and paused; ``client_selectors`` names their victims
* ``power_cut``, ``corrupt_tail``, ``disk``, ``clock``   faults of a machine, for runtimes where each node has its own;
  ``unsynced_writes`` what the first two have in common
* ``operator``    an operator's requests through ZooKeeper: what ``delete_controller``, ``elect_preferred`` and
  ``reassign_partitions`` share
* ``stray_requests``   requests that arrive twice, after newer ones, or never
* ``connections``   slow links and connections that are reset
* ``packets``, ``bandwidth``   networks that lose, delay, double and reorder packets, or are narrow
* ``zookeeper``   faults of single members of the ensemble; ``members`` whom they strike
* ``link_rules``  what faults do to links: values, with guards that remove them
* ``grudge``      shapes of a partition, pure and seeded
* ``selectors``   names of victims, resolved when a fault strikes
* ``plan``        what strikes when: derived from the seed, or read from a file; ``recipes`` are scripted combinations
* ``trigger``     when a fault strikes, if the clock alone does not decide it
* ``traced_trigger``   any traced event as the trigger of a planned fault
* ``conductor``   carries a plan out and writes intent, effect and heal into the history
* ``cluster_view``  the cluster as the harness sees it; ``zookeeper_view``, ``quorum_view``  by ZooKeeper, by KRaft
* ``direct_client`` a client of the harness at one broker, past every link rule
* ``availability``  which runtime can do which fault; ``pages`` generates the tables of ``docs/faults.md``

``docs/adding.md`` says how to add a fault.
"""

from __future__ import annotations

from typing import Final

from nemesis.faults.add_broker import AddBroker
from nemesis.faults.bandwidth import Bandwidth
from nemesis.faults.base import Fault
from nemesis.faults.clients import KillClient, PauseClient
from nemesis.faults.clock import ClockSkew, ClockSkewZookeeper
from nemesis.faults.connections import ResetConnections, SlowLink
from nemesis.faults.corrupt_tail import CorruptTail
from nemesis.faults.delay_alter_partition import DelayAlterPartition
from nemesis.faults.delay_control import DelayControl
from nemesis.faults.delete_controller import DeleteController
from nemesis.faults.disk import DiskFailure, DiskFull, LogDirFailure
from nemesis.faults.elect_preferred import ElectPreferred
from nemesis.faults.graceful_restart import GracefulRestart
from nemesis.faults.kill import Kill, KillController
from nemesis.faults.packets import (
    PacketDelay,
    PacketDuplication,
    PacketLoss,
    PacketReordering,
)
from nemesis.faults.partition import Partition
from nemesis.faults.pause import Pause
from nemesis.faults.power_cut import PowerCut
from nemesis.faults.reassign_partitions import ReassignPartitions
from nemesis.faults.remove_broker import RemoveBroker
from nemesis.faults.restart import Restart
from nemesis.faults.rolling_restart import RollingRestart
from nemesis.faults.session import ExpireSession
from nemesis.faults.slow_zookeeper import SlowZookeeper
from nemesis.faults.stall import StallFollower
from nemesis.faults.stray_requests import StrayRequests
from nemesis.faults.zookeeper import KillZookeeper, PartitionZookeeper, PauseZookeeper
from nemesis.interfaces.runtime import EVERYWHERE
from nemesis.registry import Registry, by_name

__all__ = ["DEFAULT_KINDS", "FAULTS", "Fault"]

_KINDS: Final[tuple[type[Fault], ...]] = (
    Partition,
    KillController,
    Kill,
    ExpireSession,
    StallFollower,
    Pause,
    Restart,
    GracefulRestart,
    DelayControl,
    DelayAlterPartition,
    RollingRestart,
    AddBroker,
    RemoveBroker,
    DeleteController,
    ElectPreferred,
    ReassignPartitions,
    SlowZookeeper,
    PowerCut,
    CorruptTail,
    DiskFull,
    DiskFailure,
    LogDirFailure,
    ClockSkew,
    KillZookeeper,
    PauseZookeeper,
    PartitionZookeeper,
    ClockSkewZookeeper,
    StrayRequests,
    SlowLink,
    ResetConnections,
    PacketLoss,
    PacketDelay,
    PacketDuplication,
    PacketReordering,
    Bandwidth,
    KillClient,
    PauseClient,
)

FAULTS: Final[Registry[type[Fault]]] = Registry("fault", by_name(_KINDS))
"""Every fault by the name that ``--faults`` and plan files use."""

DEFAULT_KINDS: Final = tuple(name for name, kind in FAULTS.items() if kind.needs <= EVERYWHERE)
"""The kinds of a scenario that names none: those that every runtime can do. The others must be asked for."""
