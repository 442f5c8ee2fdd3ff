"""Everything that a broker does in ZooKeeper, in Kafka's terms; one part for each kind of znode.

Reads and plain writes go through the session, which asks them again after a lost connection; what only the controller
may write goes through the fence. Method names are those of kafka.zk.KafkaZkClient, which has no parts.
"""

from __future__ import annotations

from nemesis.reference.ports import ZooKeeperClient
from nemesis.reference.trace import Tracer
from nemesis.reference.zk.broker_znodes import BrokerZnodes
from nemesis.reference.zk.config_znodes import ConfigZnodes
from nemesis.reference.zk.controller_election import ControllerElection
from nemesis.reference.zk.feature_znode import FeatureZnode
from nemesis.reference.zk.fenced_writes import FencedWrites
from nemesis.reference.zk.isr_change_notifications import IsrChangeNotifications
from nemesis.reference.zk.log_dir_events import LogDirEvents
from nemesis.reference.zk.partition_reassignment import PartitionReassignmentZnode
from nemesis.reference.zk.partition_states import PartitionStates
from nemesis.reference.zk.preferred_replica_election import PreferredReplicaElectionZnode
from nemesis.reference.zk.producer_id_block import ProducerIdBlockZnode
from nemesis.reference.zk.replication_utils import ReplicationUtils
from nemesis.reference.zk.topic_deletions import TopicDeletions
from nemesis.reference.zk.topic_znodes import TopicZnodes
from nemesis.reference.zk.zookeeper_session import ZooKeeperSession


class KafkaZkClient:
    """The parts, on one connection."""

    def __init__(self, zookeeper: ZooKeeperClient, *, tracer: Tracer) -> None:
        self.session = ZooKeeperSession(zookeeper, tracer=tracer)
        fenced = FencedWrites(self.session, tracer=tracer)
        self.election = ControllerElection(self.session, fenced)
        self.brokers = BrokerZnodes(self.session)
        self.configs = ConfigZnodes(self.session)
        self.topics = TopicZnodes(self.session, fenced)
        self.deletions = TopicDeletions(self.session, fenced)
        self.states = PartitionStates(self.session, fenced)
        self.replication_utils = ReplicationUtils(self.session, tracer=tracer)
        self.isr_change_notifications = IsrChangeNotifications(self.session, fenced)
        self.reassignment = PartitionReassignmentZnode(self.session, fenced)
        self.log_dir_events = LogDirEvents(self.session, fenced)
        self.producer_ids = ProducerIdBlockZnode(self.session)
        self.feature = FeatureZnode(self.session)
        self.preferred_replica_election = PreferredReplicaElectionZnode(self.session, fenced)
