"""DescribeConfigs, AlterConfigs and IncrementalAlterConfigs: translated for ``ConfigAdminManager``.

Any broker answers, whether it is the controller or not, as in Kafka with ZooKeeper.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nemesis.reference.model import ApiError
from nemesis.reference.protocol.schema import build, build_items, field_names, item_class
from nemesis.reference.server.apis.conversion import NO_THROTTLE, response_of
from nemesis.reference.server.config_admin_manager import (
    AlterConfigOp,
    ConfigAdminManager,
    ConfigResource,
)
from nemesis.reference.server.config_helper import ConfigEntry, ConfigSource


class ConfigApis:
    """Needs the one who reads and writes settings in ZooKeeper."""

    def __init__(self, manager: ConfigAdminManager) -> None:
        self._manager = manager

    async def handle_describe_configs(self, message: Any) -> Any:
        response = response_of(message)
        results = []
        for asked in message.resources:
            resource = _resource(asked)
            error, entries = await self._manager.describe_configs(resource)
            keys = asked.configuration_keys
            requested = [entry for entry in entries if keys is None or entry.name in keys]
            results.append(
                {
                    **_answer(resource, error),
                    "configs": _config_items(message, item_class(response, "results"), requested),
                }
            )
        return build(
            response,
            throttle_time=NO_THROTTLE,
            results=build_items(response, "results", results),
        )

    async def handle_alter_configs(self, message: Any) -> Any:
        alterations = [
            (_resource(asked), [AlterConfigOp(item.name, item.value) for item in asked.configs])
            for asked in message.resources
        ]
        answers = await self._manager.alter_configs(
            alterations, validate_only=message.validate_only
        )
        return _altered(message, alterations, answers)

    async def handle_incremental_alter_configs(self, message: Any) -> Any:
        alterations = [
            (
                _resource(asked),
                [
                    AlterConfigOp(item.name, item.value, int(item.config_operation))
                    for item in asked.configs
                ],
            )
            for asked in message.resources
        ]
        answers = await self._manager.incremental_alter_configs(
            alterations, validate_only=message.validate_only
        )
        return _altered(message, alterations, answers)


def _resource(asked: Any) -> ConfigResource:
    return ConfigResource(int(asked.resource_type), asked.resource_name)


def _answer(resource: ConfigResource, error: ApiError) -> dict[str, Any]:
    return {
        "error_code": error.code,
        "error_message": error.message,
        "resource_type": resource.type,
        "resource_name": resource.name,
    }


def _altered(
    message: Any,
    alterations: Sequence[tuple[ConfigResource, object]],
    answers: Sequence[ApiError],
) -> Any:
    response = response_of(message)
    items = (
        _answer(resource, answer)
        for (resource, _), answer in zip(alterations, answers, strict=True)
    )
    return build(
        response,
        throttle_time=NO_THROTTLE,
        responses=build_items(response, "responses", items),
    )


def _config_items(message: Any, result: type[Any], entries: Sequence[ConfigEntry]) -> Any:
    wants_synonyms = getattr(message, "include_synonyms", False)
    wants_documentation = getattr(message, "include_documentation", False)
    entry_class = item_class(result, "configs")
    items = []
    for entry in entries:
        synonyms: tuple[Any, ...] = ()
        if wants_synonyms and "synonyms" in field_names(entry_class):
            synonyms = build_items(
                entry_class,
                "synonyms",
                (
                    {"name": s.name, "value": s.value, "source": int(s.source)}
                    for s in entry.synonyms
                ),
            )
        items.append(
            {
                **entry_values(entry),
                "is_default": entry.source is ConfigSource.DEFAULT_CONFIG,
                "synonyms": synonyms,
                "config_type": int(entry.type),
                "documentation": entry.documentation if wants_documentation else None,
            }
        )
    return build_items(result, "configs", items)


def entry_values(entry: ConfigEntry) -> dict[str, Any]:
    """What CreateTopics tells of a setting, too."""
    return {
        "name": entry.name,
        "value": entry.value,
        "read_only": entry.read_only,
        "config_source": int(entry.source),
        "is_sensitive": False,
    }
