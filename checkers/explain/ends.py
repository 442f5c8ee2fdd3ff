"""Why both cannot be: what administrators were told and what is there at the end; what the harness could see."""

from __future__ import annotations

from typing import Final

from nemesis.checkers.framework.reason import Case
from nemesis.history.events import Kind

_BLIND: Final = (
    "What nobody could look at can neither be held against the cluster nor be taken for right."
)
_MISSED: Final = (
    "A broker that missed the request does not get it again, nor does it with Kafka: "
    "the log stays, and is not used."
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
        return "ZooKeeper has no such partition at the end: who still has it, or tells of it, missed its deletion."
    return (
        "What clients were told leaves only some states possible, whatever may have come of the operations that "
        "they heard nothing of. In none of them this can be."
    )


def _znodes(case: Case) -> str:
    if len(case.events) == 1:
        return (
            "The controller deletes a topic that is marked, once all its replicas are gone. Without the mark nobody "
            "had asked, and its replicas may be there still."
        )
    if case.events[-1].zk_op == "delete":
        return (
            "A topic goes as a whole: a znode that it leaves behind speaks of what is no more, to the next topic of "
            "its name too."
        )
    return (
        "A topic's id tells its life from all others: with one id for two, brokers take the records of the one for "
        "the other's."
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
            "It was taken from that broker for good: a log that stays takes space, and comes back to life with the "
            "next move."
        )
    if "has no log" in case.finding.sentence:
        return "A replica without a log holds none of the records that it is counted on for."
    return (
        "What administrators were told leaves only those places, whatever may have come of the requests that they "
        "heard nothing of. The partition is at none of them."
    )


def convergence(case: Case) -> str:
    if case.is_undecided and case.first_of(Kind.HARNESS_LAG) is not None:
        return "On a machine that late nothing comes true in time: the cluster may have been as starved as the harness."
    if case.is_undecided:
        return _BLIND
    if case.finding.sentence.startswith("Without any fault"):
        return "No fault was applied yet: a cluster whose brokers answer creates topics and elects their leaders."
    return (
        "Every fault had been healed, and the stated time was over: what has not come back by then, the cluster "
        "does not bring back by itself."
    )


def late_recovery(case: Case) -> str:
    if case.is_undecided:
        return "On a machine that may have been late itself, a late recovery shows nothing about the cluster."
    return (
        "Every wait of a recovery ends by a time-out of the configuration. All of them together had passed with no "
        "fault in force, and a client that had just been refused was refused again."
    )


def no_unforeseen_exception(case: Case) -> str:
    return (
        f"No code of broker {case.events[0].node} expects this exception. The broker may survive it, but what the "
        "exception interrupted is not done."
    )


def fault_effect(case: Case) -> str:
    if len(case.events) > 1 or case.events[0].kind == Kind.FAULT_SKIPPED:
        return "The run did not go through what its plan says, so it shows nothing about it."
    return (
        "A run proves something about a fault only if the fault is seen to strike and seen to be gone: what was not "
        "seen may never have been."
    )
