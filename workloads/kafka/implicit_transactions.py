"""Requests of ``transaction.version`` 2 (KIP-890, part 2), and how a client learns whether a cluster has it.

With it no request adds partitions or groups to a transaction: the leader that gets a transactional batch adds its
partition, and the group coordinator that gets offsets adds the group. Each end gives the producer its next epoch, so
that what arrives late is refused.

Versions are those of Kafka 4: Produce 12, TxnOffsetCommit 5, EndTxn 5. kio has older ones. The fields are the same,
and EndTxn's answer has two more.
"""

from dataclasses import dataclass, field
from typing import ClassVar, Final

from kio.schema.api_versions.v3.request import ApiVersionsRequest
from kio.schema.end_txn.v4 import request as end_txn
from kio.schema.end_txn.v4 import response as end_txn_response
from kio.schema.errors import ErrorCode
from kio.schema.produce.v9.request import ProduceRequest
from kio.schema.produce.v11.response import ProduceResponse
from kio.schema.txn_offset_commit.v3.request import TxnOffsetCommitRequest
from kio.schema.txn_offset_commit.v4.response import TxnOffsetCommitResponse
from kio.schema.types import ProducerId
from kio.static.primitive import i16

from nemesis.workloads.kafka.client import KafkaClient
from nemesis.workloads.kafka.errors import BrokerError

FEATURE: Final = "transaction.version"
IMPLICIT: Final = 2
"""The version from which on partitions and groups are added without a request."""
_SOFTWARE: Final = ApiVersionsRequest(client_software_name="nemesis", client_software_version="1")


@dataclass(frozen=True, slots=True, kw_only=True)
class EndTxnResponse(end_txn_response.EndTxnResponse):
    """The producer's id and its epoch after the end."""

    __version__: ClassVar[i16] = i16(5)
    producer_id: ProducerId = field(metadata={"kafka_type": "int64"})
    producer_epoch: i16 = field(metadata={"kafka_type": "int16"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ImplicitEndTxnRequest(end_txn.EndTxnRequest):
    """EndTxn 5."""

    __version__: ClassVar[i16] = i16(5)
    __response__: ClassVar = EndTxnResponse


@dataclass(frozen=True, slots=True, kw_only=True)
class ImplicitProduceRequest(ProduceRequest):
    """Produce 12."""

    __version__: ClassVar[i16] = i16(12)
    __response__: ClassVar = ProduceResponse


@dataclass(frozen=True, slots=True, kw_only=True)
class ImplicitTxnOffsetCommitRequest(TxnOffsetCommitRequest):
    """TxnOffsetCommit 5."""

    __version__: ClassVar[i16] = i16(5)
    __response__: ClassVar = TxnOffsetCommitResponse


async def transaction_version(client: KafkaClient, timeout_s: float) -> int:
    """Return the cluster's ``transaction.version``, 0 if it does not have the feature. Raises ``KafkaError``."""
    response = await client.ask_any(_SOFTWARE, timeout_s)
    if response.error_code is not ErrorCode.none:
        raise BrokerError(response.error_code, definite=True)
    levels = {
        str(feature.name): int(feature.max_version_level) for feature in response.finalized_features
    }
    return levels.get(FEATURE, 0)
