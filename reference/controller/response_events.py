"""What the brokers' answers to control requests mean to the controller: a pure function from answer to event.

The request-send tasks only look; what follows from an answer is done by the event task, in its turn. An event carries
the controller epoch that the request had, so that one of an earlier term is told from one of this term.
Source: the callbacks of kafka.controller.AbstractControllerBrokerRequestBatch.
"""

from __future__ import annotations

import logging
from typing import Any

from kio.schema.errors import ErrorCode

from nemesis.reference.controller import control_requests
from nemesis.reference.controller.controller_context import ControllerContext
from nemesis.reference.controller.controller_events import (
    Event,
    NewerControllerNoticed,
    ReplicasFailed,
    TopicDeletionStopReplicaResponseReceived,
)

_logger = logging.getLogger(__name__)


def event_of(
    context: ControllerContext, api: str, broker_id: int, request: Any, response: Any
) -> Event | None:
    """Return what the controller has to do about ``broker_id``'s answer; None for nothing."""
    error = response.error_code
    if error is ErrorCode.stale_controller_epoch:
        reason = f"broker {broker_id} answered {api} with STALE_CONTROLLER_EPOCH"
        return NewerControllerNoticed(request.controller_epoch, reason)
    if error is not ErrorCode.none:
        _logger.warning("broker %d answered %s with %s", broker_id, api, error.name)
    if api == "StopReplica":
        return _deletions(context, broker_id, request, response)
    if api == "LeaderAndIsr" and error is ErrorCode.none:
        errors = control_requests.partition_errors(response, context.topic_names)
        failed = [tp for tp, code in errors.items() if code is ErrorCode.kafka_storage_error]
        if failed:
            return ReplicasFailed(
                request.controller_epoch, request.broker_epoch, broker_id, tuple(failed)
            )
    return None


def _deletions(
    context: ControllerContext, broker_id: int, request: Any, response: Any
) -> Event | None:
    """What came of each replica that was to be deleted because its topic is."""
    deleted = [
        tp
        for tp in control_requests.deleted_partitions(request)
        if tp.topic in context.topics_with_deletion_started
    ]
    if not deleted:
        return None
    if response.error_code is ErrorCode.none:
        answered = control_requests.stop_replica_errors(response)
        errors = {tp: answered.get(tp, ErrorCode.unknown_server_error) for tp in deleted}
    else:
        errors = dict.fromkeys(deleted, response.error_code)
    return TopicDeletionStopReplicaResponseReceived(
        request.controller_epoch,
        request.broker_epoch,
        broker_id,
        errors,
    )
