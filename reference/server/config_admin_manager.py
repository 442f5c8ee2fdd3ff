"""AlterConfigs, IncrementalAlterConfigs and DescribeConfigs: validate, write or read the znodes of settings.

Any broker is asked for a topic, each one for itself and for all brokers together. The znode is written and everybody is
notified; the answer does not wait until they have followed. Each resource has its own answer.
Source: kafka.server.ZkAdminManager and ConfigAdminManager of Kafka 3.9, whose error codes these are: an unknown setting
of a topic is INVALID_CONFIG, a value that cannot be is INVALID_REQUEST.

What somebody else has set and means nothing here stays as it is in an incremental change.
Limits: no setting of type list is honoured, so there is nothing to append to or subtract from; no loggers.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from kio.schema.errors import ErrorCode

from nemesis.reference.log import log_config
from nemesis.reference.log.log_config import ConfigValueError, UnknownConfigError
from nemesis.reference.model import ApiError
from nemesis.reference.server import dynamic_broker_config
from nemesis.reference.server.admin_utils import topic_name_problem
from nemesis.reference.server.config_helper import ConfigEntry, ConfigHelper
from nemesis.reference.server.metadata_cache import MetadataCache
from nemesis.reference.zk import config_znodes
from nemesis.reference.zk.errors import ZooKeeperError
from nemesis.reference.zk.kafka_zk_client import KafkaZkClient

_logger = logging.getLogger(__name__)

_NONE = ApiError(ErrorCode.none)


class ResourceType(IntEnum):
    """As in the protocol."""

    TOPIC = 2
    BROKER = 4


class OpType(IntEnum):
    """As in IncrementalAlterConfigs."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


@dataclass(frozen=True, slots=True)
class ConfigResource:
    """Whose settings; a broker without a name stands for all."""

    type: int
    name: str

    def __str__(self) -> str:
        is_known = self.type in list(ResourceType)
        return f"{ResourceType(self.type).name if is_known else self.type} {self.name!r}"


@dataclass(frozen=True, slots=True)
class AlterConfigOp:
    """One setting to be changed."""

    name: str
    value: str | None
    op_type: int = OpType.SET


Alterations = Sequence[tuple[ConfigResource, Sequence[AlterConfigOp]]]
Change = Callable[[dict[str, str]], Mapping[str, str]]


class _RefusedError(Exception):
    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code


class ConfigAdminManager:
    """See the module. Results come in the order of requests."""

    def __init__(
        self,
        broker_id: int,
        *,
        zk_client: KafkaZkClient,
        metadata_cache: MetadataCache,
        helper: ConfigHelper,
    ) -> None:
        self._broker_id = broker_id
        self._zk_client = zk_client
        self._metadata_cache = metadata_cache
        self._helper = helper

    async def alter_configs(
        self, alterations: Alterations, *, validate_only: bool
    ) -> list[ApiError]:
        """Let each resource have these settings and no others."""

        def replaced(ops: Sequence[AlterConfigOp]) -> Change:
            return lambda _present: {op.name: op.value or "" for op in ops}

        return await self._alter_all(alterations, replaced, validate_only=validate_only)

    async def incremental_alter_configs(
        self, alterations: Alterations, *, validate_only: bool
    ) -> list[ApiError]:
        """Change these settings of each resource; the others stay (KIP-339)."""

        def changed(ops: Sequence[AlterConfigOp]) -> Change:
            return lambda present: _incremented(present, ops)

        return await self._alter_all(alterations, changed, validate_only=validate_only)

    async def describe_configs(
        self, resource: ConfigResource
    ) -> tuple[ApiError, Sequence[ConfigEntry]]:
        """All settings of a resource, or why they are not told."""
        try:
            if resource.type == ResourceType.TOPIC:
                problem = topic_name_problem(resource.name, ())
                if problem is not None:
                    raise _RefusedError(ErrorCode.invalid_topic_exception, problem)
                self._refuse_unknown_topic(resource.name)
                properties = await self._zk_client.configs.get_entity_config(
                    config_znodes.TOPICS, resource.name
                )
                return _NONE, self._helper.topic_entries(properties)
            if resource.type == ResourceType.BROKER:
                if self._broker_entity(resource) == config_znodes.DEFAULT:
                    return _NONE, self._helper.default_broker_entries()
                return _NONE, self._helper.broker_entries()
            raise _RefusedError(
                ErrorCode.invalid_request, f"Unsupported resource type: {resource.type}"
            )
        except (_RefusedError, ZooKeeperError) as error:
            return _refused(resource, error), ()

    async def _alter_all(
        self,
        alterations: Alterations,
        change_by: Callable[[Sequence[AlterConfigOp]], Change],
        *,
        validate_only: bool,
    ) -> list[ApiError]:
        named = Counter(resource for resource, _ in alterations)
        answers = []
        for resource, ops in alterations:
            try:
                if named[resource] > 1:
                    raise _RefusedError(
                        ErrorCode.invalid_request, "Each resource must appear at most once."
                    )
                await self._alter(resource, ops, change_by(ops), validate_only=validate_only)
            except (_RefusedError, UnknownConfigError, ConfigValueError, ZooKeeperError) as error:
                answers.append(_refused(resource, error))
            else:
                answers.append(_NONE)
        return answers

    async def _alter(
        self,
        resource: ConfigResource,
        ops: Sequence[AlterConfigOp],
        change: Change,
        *,
        validate_only: bool,
    ) -> None:
        _refuse_malformed(ops)
        entity_type, name = self._entity(resource)
        validate = (
            log_config.validate
            if resource.type == ResourceType.TOPIC
            else dynamic_broker_config.validate
        )
        validate({op.name: op.value or "" for op in ops if op.op_type != OpType.DELETE})
        if validate_only:
            change(await self._zk_client.configs.get_entity_config(entity_type, name))
            return
        _logger.info("altering the settings of %s: %s", resource, list(ops))
        await self._zk_client.configs.alter_entity_config(entity_type, name, change)

    def _entity(self, resource: ConfigResource) -> tuple[str, str]:
        """Type and name of the znode."""
        if resource.type == ResourceType.TOPIC:
            if not resource.name:
                raise _RefusedError(
                    ErrorCode.invalid_request, "Default topic resources are not allowed."
                )
            self._refuse_unknown_topic(resource.name)
            return config_znodes.TOPICS, resource.name
        if resource.type == ResourceType.BROKER:
            return config_znodes.BROKERS, self._broker_entity(resource)
        raise _RefusedError(
            ErrorCode.invalid_request,
            f"AlterConfigs is only supported for topics and brokers, but resource type is {resource.type}",
        )

    def _broker_entity(self, resource: ConfigResource) -> str:
        if not resource.name:
            return config_znodes.DEFAULT
        if resource.name != str(self._broker_id):
            raise _RefusedError(
                ErrorCode.invalid_request,
                f"Unexpected broker id, expected {self._broker_id} or empty string, "
                f"but received {resource.name}",
            )
        return resource.name

    def _refuse_unknown_topic(self, topic: str) -> None:
        if not self._metadata_cache.topic_partitions(topic):
            raise _RefusedError(
                ErrorCode.unknown_topic_or_partition, f"The topic '{topic}' does not exist."
            )


def _refuse_malformed(ops: Sequence[AlterConfigOp]) -> None:
    """Raise what Kafka has against the operations, whatever the settings are."""
    named = Counter(op.name for op in ops)
    if twice := [name for name, count in named.items() if count > 1]:
        raise _RefusedError(
            ErrorCode.invalid_request, f"Error due to duplicate config keys: {', '.join(twice)}"
        )
    if unknown := [op for op in ops if op.op_type not in list(OpType)]:
        raise _RefusedError(
            ErrorCode.invalid_request,
            f"Unknown operation {unknown[0].op_type} for {unknown[0].name}",
        )
    if nulls := [op.name for op in ops if op.value is None and op.op_type != OpType.DELETE]:
        raise _RefusedError(
            ErrorCode.invalid_request, f"Null value not supported for: {', '.join(nulls)}"
        )
    for op in ops:
        if op.op_type in (OpType.APPEND, OpType.SUBTRACT):
            raise _RefusedError(
                ErrorCode.invalid_config,
                f"Config value {OpType(op.op_type).name.lower()} is not allowed for config key: {op.name}",
            )


def _incremented(present: Mapping[str, str], ops: Sequence[AlterConfigOp]) -> dict[str, str]:
    properties = dict(present)
    for op in ops:
        if op.op_type == OpType.DELETE:
            properties.pop(op.name, None)
        else:
            properties[op.name] = op.value or ""
    return properties


def _refused(resource: ConfigResource, error: Exception) -> ApiError:
    message = str(error)
    if isinstance(error, _RefusedError):
        code = error.code
    elif isinstance(error, UnknownConfigError):
        code = ErrorCode.invalid_config
    elif isinstance(error, ConfigValueError):
        code = ErrorCode.invalid_request
        message = f"Invalid config value for resource {resource}: {error}"
    else:
        code = ErrorCode.unknown_server_error
    _logger.warning("settings of %s: %s: %s", resource, code.name, message)
    return ApiError(code, message)
