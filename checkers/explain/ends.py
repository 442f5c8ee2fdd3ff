"""Why both cannot be: what administrators were told and what is there at the end; what the harness could see."""

from __future__ import annotations

from typing import Final

from nemesis.checkers.framework.reason import Case
from nemesis.history.events import Kind

_BLIND: Final = (
    "nemesis could not observe this part of the cluster, so it does not know whether it is right."
)
_MISSED: Final = (
    "The broker missed the request to delete its log. Kafka's controller does not send it again either, so the log "
    "stays on the disk, unused."
)


def deletion(case: Case) -> str:
    if case.is_undecided:
        return _BLIND
    if case.is_allowed:
        return _MISSED
    znodes = [event for event in case.events if event.kind == Kind.ZNODE]
    end_state = case.first_of(Kind.END_STATE)
    if end_state is None and len(znodes) == len(case.events):
        return _znodes(case)
    if end_state is not None and end_state.node is not None:
        return (
            "At the end ZooKeeper does not have this partition. The broker that still has it or still reports it has "
            "missed its deletion."
        )
    return (
        "The answers that clients received allow only some states of the topic, whether the unanswered operations "
        "happened or not. This state is not among them."
    )


def _znodes(case: Case) -> str:
    if len(case.events) == 1:
        return (
            "The controller may delete a topic only if a client has marked it for deletion, and all its replicas are "
            "gone. This topic had no mark, so its replicas may still exist."
        )
    if case.events[-1].zk_op == "delete":
        return (
            "All znodes of a topic are deleted with it. A znode that is left describes a topic that no longer "
            "exists, and misleads the next topic of this name."
        )
    return (
        "Brokers distinguish topics by their id. If two topics have the same id, brokers mistake the records of one "
        "for records of the other."
    )


def reassignment(case: Case) -> str:
    if case.is_undecided:
        return _BLIND
    logs = [
        event for event in case.events if event.kind == Kind.END_STATE and event.node is not None
    ]
    if case.is_allowed:
        return _MISSED
    if logs:
        return (
            "The replica was removed from this broker. A log that stays takes space, and its old records come back "
            "if the replica moves to this broker again."
        )
    if all(event.kind == Kind.ZNODE for event in case.events):
        return (
            "The same controller was in office, the topic was not deleted, and no client asked for anything else. A "
            "controller takes a request out of the znode after it has written the requested replicas."
        )
    if "has no log" in case.finding.sentence:
        return "The broker counts as a replica, but without a log it has none of the partition's records."
    return (
        "The answers that clients received allow only those replicas, whether the unanswered requests happened or "
        "not. The partition has other replicas."
    )


def convergence(case: Case) -> str:
    if case.is_undecided and case.first_of(Kind.HARNESS_LAG) is not None:
        return "The machine was so slow that the cluster may not have had enough time either."
    if case.is_undecided:
        return _BLIND
    if case.finding.sentence.startswith("Without any fault"):
        return "No fault had begun yet. A cluster whose brokers answer must create topics and elect their leaders."
    return (
        "nemesis had undone all faults, and the scenario's time for recovery (convergence_s) had passed. The cluster "
        "must recover even if nemesis could not verify the end of a fault."
    )


def late_recovery(case: Case) -> str:
    if case.is_undecided:
        return "The machine may have been too slow, so a late recovery proves nothing about the cluster."
    return (
        "Each step of a recovery ends at the latest with a time-out of the configuration. More time than all these "
        "time-outs together had passed without an active fault, and writes still failed."
    )


def no_unforeseen_exception(case: Case) -> str:
    return (
        f"No code of broker {case.events[0].node} expects this exception. The broker may continue, but the action "
        "that the exception interrupted was not completed."
    )


def fault_effect(case: Case) -> str:
    if len(case.events) > 1 or case.events[0].kind == Kind.FAULT_SKIPPED:
        return "The run did not inject all faults of its plan, so it shows nothing about them."
    return (
        "A run shows how a cluster bears a fault only if the fault really had its effect, and really ended. Here one "
        "of the two was not measured."
    )
