"""JoinGroup, SyncGroup, Heartbeat, LeaveGroup; DescribeGroups, ListGroups and DeleteGroups.

ConsumerGroupHeartbeat and ConsumerGroupDescribe are offered and answered UNSUPPORTED_VERSION, as Kafka 3.9 with
ZooKeeper does, whose coordinator is not that of KIP-848 either. Clients then go on with the requests above.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final, TypeVar

from kio.schema.errors import ErrorCode

from nemesis.reference.coordinator.group.group_coordinator import CLASSIC_GROUP, GroupCoordinator
from nemesis.reference.coordinator.group.group_joins import JoinGroup
from nemesis.reference.coordinator.group.group_results import (
    GroupSummary,
    JoinGroupResult,
    LeaveGroupResult,
    MemberIdentity,
    SyncGroupResult,
)
from nemesis.reference.coordinator.group.group_syncs import SyncGroup
from nemesis.reference.protocol.schema import build, build_items, item_class
from nemesis.reference.server.apis.conversion import NO_THROTTLE, milliseconds, response_of
from nemesis.reference.server.kafka_request_handler import Later

_FIRST_JOIN_VERSION_WITH_REQUIRED_ID: Final = 4
_FIRST_JOIN_VERSION_THAT_SKIPS: Final = 9
_FIRST_JOIN_VERSION_WITH_NULL_PROTOCOL: Final = 7
_FIRST_SYNC_VERSION_WITH_PROTOCOLS: Final = 5
_FIRST_LEAVE_VERSION_OF_SEVERAL: Final = 3
_NOT_AUTHORIZED_OPERATIONS: Final = -(1 << 31)
"""What DescribeGroups answers where the authorized operations were not asked for."""

Result = TypeVar("Result")


def answer_of(
    start: Callable[[Callable[[Result], None]], None], to_response: Callable[[Result], Any]
) -> Any | Later:
    """Start what calls back with a result once; return the response to it, or what it will be."""
    answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def respond(result: Result) -> None:
        if answer.done():
            return  # the broker stops, and the connection with it
        try:
            answer.set_result(to_response(result))
        except Exception as error:  # noqa: BLE001 - reported by the request handlers
            answer.set_exception(error)

    start(respond)
    return answer.result() if answer.done() else answer


class GroupApis:
    """Needs the coordinator of this broker."""

    def __init__(self, coordinator: GroupCoordinator) -> None:
        self._coordinator = coordinator

    def handle_join_group(self, message: Any, client_id: str, client_host: str) -> Any | Later:
        """The response once the group's next generation begins. Version 0 has one time-out for both purposes."""
        instance_id = getattr(message, "group_instance_id", None)
        rebalance_timeout = getattr(message, "rebalance_timeout", message.session_timeout)
        request = JoinGroup(
            group_id=message.group_id,
            member_id=message.member_id,
            group_instance_id=instance_id,
            client_id=client_id,
            client_host=f"/{client_host}",
            rebalance_timeout_ms=milliseconds(rebalance_timeout),
            session_timeout_ms=milliseconds(message.session_timeout),
            protocol_type=message.protocol_type,
            protocols=tuple((item.name, item.metadata) for item in message.protocols),
            requires_known_member_id=instance_id is None
            and message.__version__ >= _FIRST_JOIN_VERSION_WITH_REQUIRED_ID,
            supports_skipping_assignment=message.__version__ >= _FIRST_JOIN_VERSION_THAT_SKIPS,
        )
        return answer_of(partial(self._coordinator.join_group, request), partial(_joined, message))

    def handle_sync_group(self, message: Any) -> Any | Later:
        """The response once the leader's assignments are stored."""
        protocol_type = getattr(message, "protocol_type", None)
        protocol_name = getattr(message, "protocol_name", None)
        if message.__version__ >= _FIRST_SYNC_VERSION_WITH_PROTOCOLS and (
            protocol_type is None or protocol_name is None
        ):
            return _synced(message, SyncGroupResult(ErrorCode.inconsistent_group_protocol))
        request = SyncGroup(
            group_id=message.group_id,
            generation_id=message.generation_id,
            member_id=message.member_id,
            group_instance_id=getattr(message, "group_instance_id", None),
            protocol_type=protocol_type,
            protocol_name=protocol_name,
            assignments={item.member_id: item.assignment for item in message.assignments},
        )
        return answer_of(partial(self._coordinator.sync_group, request), partial(_synced, message))

    def handle_heartbeat(self, message: Any) -> Any:
        error = self._coordinator.heartbeat(
            message.group_id,
            message.generation_id,
            message.member_id,
            getattr(message, "group_instance_id", None),
        )
        return build(response_of(message), throttle_time=NO_THROTTLE, error_code=error)

    def handle_leave_group(self, message: Any) -> Any:
        members = getattr(message, "members", None)
        leaving = (
            [MemberIdentity(message.member_id, None)]
            if members is None
            else [MemberIdentity(item.member_id, item.group_instance_id) for item in members]
        )
        return _left(message, self._coordinator.leave_group(message.group_id, leaving))

    def handle_describe_groups(self, message: Any) -> Any:
        response = response_of(message)
        group_class = item_class(response, "groups")
        groups = (
            _described(group_class, group_id, self._coordinator.describe_group(group_id))
            for group_id in message.groups
        )
        return build(
            response, throttle_time=NO_THROTTLE, groups=build_items(response, "groups", groups)
        )

    def handle_list_groups(self, message: Any) -> Any:
        response = response_of(message)
        error, groups = self._coordinator.list_groups(
            getattr(message, "states_filter", ()), getattr(message, "types_filter", ())
        )
        items = (
            {
                "group_id": group.group_id,
                "protocol_type": group.protocol_type,
                "group_state": group.state,
                "group_type": CLASSIC_GROUP,
            }
            for group in groups
        )
        return build(
            response,
            throttle_time=NO_THROTTLE,
            error_code=error,
            groups=build_items(response, "groups", items),
        )

    def handle_delete_groups(self, message: Any) -> Any:
        response = response_of(message)
        errors = self._coordinator.delete_groups(dict.fromkeys(message.groups_names))
        items = ({"group_id": group_id, "error_code": error} for group_id, error in errors.items())
        return build(
            response, throttle_time=NO_THROTTLE, results=build_items(response, "results", items)
        )

    def handle_consumer_group_heartbeat(self, message: Any) -> Any:
        return build(
            response_of(message),
            throttle_time=NO_THROTTLE,
            error_code=ErrorCode.unsupported_version,
            member_epoch=0,
            heartbeat_interval=NO_THROTTLE,
        )

    def handle_consumer_group_describe(self, message: Any) -> Any:
        response = response_of(message)
        groups = (_undescribed(group_id) for group_id in message.group_ids)
        return build(
            response, throttle_time=NO_THROTTLE, groups=build_items(response, "groups", groups)
        )


def _joined(message: Any, result: JoinGroupResult) -> Any:
    response = response_of(message)
    may_be_null = message.__version__ >= _FIRST_JOIN_VERSION_WITH_NULL_PROTOCOL
    members = (
        {
            "member_id": member.member_id,
            "group_instance_id": member.group_instance_id,
            "metadata": member.metadata,
        }
        for member in result.members
    )
    return build(
        response,
        throttle_time=NO_THROTTLE,
        error_code=result.error,
        generation_id=result.generation_id,
        protocol_type=result.protocol_type,
        protocol_name=result.protocol_name if may_be_null else result.protocol_name or "",
        leader=result.leader_id,
        skip_assignment=result.skip_assignment,
        member_id=result.member_id,
        members=build_items(response, "members", members),
    )


def _synced(message: Any, result: SyncGroupResult) -> Any:
    return build(
        response_of(message),
        throttle_time=NO_THROTTLE,
        error_code=result.error,
        protocol_type=result.protocol_type,
        protocol_name=result.protocol_name,
        assignment=result.assignment,
    )


def _left(message: Any, result: LeaveGroupResult) -> Any:
    """Before version 3 one member leaves, and its error is that of the request."""
    response = response_of(message)
    if message.__version__ < _FIRST_LEAVE_VERSION_OF_SEVERAL:
        (error,) = [error for _, error in result.members] or [result.error]
        return build(response, throttle_time=NO_THROTTLE, error_code=error)
    members = (
        {
            "member_id": identity.member_id,
            "group_instance_id": identity.group_instance_id,
            "error_code": error,
        }
        for identity, error in result.members
    )
    return build(
        response,
        throttle_time=NO_THROTTLE,
        error_code=result.error,
        members=build_items(response, "members", members),
    )


def _undescribed(group_id: str) -> dict[str, Any]:
    return {
        "error_code": ErrorCode.unsupported_version,
        "error_message": None,
        "group_id": group_id,
        "group_state": "",
        "group_epoch": 0,
        "assignment_epoch": 0,
        "assignor_name": "",
        "members": (),
        "authorized_operations": _NOT_AUTHORIZED_OPERATIONS,
    }


def _described(group_class: type[Any], group_id: str, summary: GroupSummary) -> dict[str, Any]:
    return {
        "error_code": summary.error,
        "group_id": group_id,
        "group_state": summary.state,
        "protocol_type": summary.protocol_type,
        "protocol_data": summary.protocol,
        "members": build_items(group_class, "members", _described_members(summary)),
        "authorized_operations": _NOT_AUTHORIZED_OPERATIONS,
    }


def _described_members(summary: GroupSummary) -> Iterable[dict[str, Any]]:
    for member in summary.members:
        yield {
            "member_id": member.member_id,
            "group_instance_id": member.group_instance_id,
            "client_id": member.client_id,
            "client_host": member.client_host,
            "member_metadata": member.metadata,
            "member_assignment": member.assignment,
        }
