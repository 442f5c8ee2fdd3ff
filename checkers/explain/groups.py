"""Why both cannot be: what a group's coordinator has acknowledged, and what it answers later."""

from __future__ import annotations

from nemesis.checkers.framework.reason import Case

_KNOWN = (
    "An acknowledged commit is in the logs of all in-sync replicas, behind the generation in which it was made: the "
    "broker that acknowledged it and every later coordinator know both."
)


def one_owner_per_generation(case: Case) -> str:  # noqa: ARG001
    return (
        "Both commits were acknowledged in the same generation, so both members were in it. Its assignment is stored "
        "once, and assigns each partition to one member."
    )


def generation_grows(case: Case) -> str:  # noqa: ARG001
    return f"{_KNOWN} The next generation has a larger number."


def fenced_member(case: Case) -> str:
    if any(event.f == "leave-group" for event in case.events):
        return "The broker has taken the member out of the group and has not loaded the group again since."
    if all(event.f == "join-group" for event in case.events):
        return "Each process that joins without a member id gets one of its own: the former one is fenced by it."
    if _is_static(case):
        return "The process that has taken over got its assignment, so the log has its member id, not the former one."
    return f"{_KNOWN} It has to refuse members of an earlier generation: another member may own the partition."


def offsets_read_as_committed(case: Case) -> str:
    commits = [event for event in case.events if event.f == "commit-offset"]
    if len(commits) == 1 and case.events[-1].offset != -1:
        return "What is read as committed has to be what a member committed and the coordinator did not refuse."
    if not commits:
        return "What is read as committed has to be what some member committed."
    return f"{_KNOWN} A later answer of the broker must not be older."


def group_progress(case: Case) -> str:  # noqa: ARG001
    return (
        "A member begins at the committed offset and commits what it has processed, so the commit is not beyond what "
        "the group has read. The group never gets the records between."
    )


def membership_kept(case: Case) -> str:
    member = "the process that has taken over" if _is_static(case) else "the member"
    return (
        f"The log of the coordinator has {member}: its generation was stored before it committed. No time-out had "
        "passed, it did not leave, and no other process joined under its instance id."
    )


def _is_static(case: Case) -> bool:
    return any(event.instance is not None for event in case.events)


def rebalances_end(case: Case) -> str:
    if case.is_undecided:
        return "The wait was too long for the configuration, but the machine was slow."
    return (
        "Each step of a rebalance ends by a time-out of the configuration. No fault was in force, and the machine was "
        "fast enough."
    )
