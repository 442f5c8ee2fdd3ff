"""Why both cannot be: what a group's coordinator has acknowledged, and what it answers later."""

from __future__ import annotations

from nemesis.checkers.framework.reason import Case

_KNOWN = (
    "An acknowledged commit is on all in-sync replicas, and so is the generation in which it was made. The broker "
    "that acknowledged it and each later coordinator know both."
)


def one_owner_per_generation(case: Case) -> str:  # noqa: ARG001
    return (
        "Both commits were acknowledged in the same generation, so both members belonged to it. A generation has one "
        "assignment, in which each partition has one member."
    )


def generation_grows(case: Case) -> str:  # noqa: ARG001
    return f"{_KNOWN} So the next generation must have a larger number."


def fenced_member(case: Case) -> str:
    if any(event.f == "leave-group" for event in case.events):
        return (
            "This broker had removed the member from the group, and has not loaded the group again since. So it must "
            "refuse the member."
        )
    if all(event.f == "join-group" for event in case.events):
        return "Each process that joins without a member id must get a new one."
    if _is_static(case):
        return (
            "The new process of this static member got its assignment. So the log has its member id and not the "
            "former one, which must be refused."
        )
    return f"{_KNOWN} It has to refuse members of an earlier generation: another member may own the partition."


def offsets_read_as_committed(case: Case) -> str:
    commits = [event for event in case.events if event.f == "commit-offset"]
    if len(commits) == 1 and case.events[-1].offset != -1:
        return "An offset may be read as committed only if a member committed it and the coordinator did not refuse it."
    if not commits:
        return "An offset may be read as committed only if some member committed it."
    return f"{_KNOWN} So a later answer must not have an older offset."


def group_progress(case: Case) -> str:  # noqa: ARG001
    return (
        "A member begins at the committed offset and commits only what it has processed. This commit is beyond the "
        "records that the group has read, so the group never gets the records between."
    )


def membership_kept(case: Case) -> str:
    if case.is_undecided:
        return (
            "The broker may have ceased to coordinate the group while it had the request. A coordinator that unloads "
            "its groups may not find this one any more."
        )
    member = "the process that has taken over" if _is_static(case) else "the member"
    return (
        f"The coordinator's log contains {member}, because its generation was stored before it committed. Since then "
        "no time-out had passed, it did not leave, and no other process joined with its instance id. So it is still "
        "a member."
    )


def _is_static(case: Case) -> bool:
    return any(event.instance is not None for event in case.events)


def rebalances_end(case: Case) -> str:
    if case.is_undecided:
        return "The configuration does not explain such a long wait, but the machine was slow."
    return (
        "Each step of a rebalance ends at the latest with a time-out of the configuration. No fault was active, and "
        "the machine was fast enough."
    )
