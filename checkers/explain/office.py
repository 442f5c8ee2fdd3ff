"""Why both cannot be: an office that is held, and its end."""

from __future__ import annotations

from nemesis.checkers.framework.reason import Case
from nemesis.history.events import Kind


def office_kept(case: Case) -> str:
    if case.events[-1].kind == Kind.CONTROLLER_ELECTED:
        return (
            "An epoch is granted once. A controller resigns from it when it is no longer its own; this one could take "
            "it up again, so it was its own all the time, and the cluster was without a controller for nothing."
        )
    created, deleted = case.events[0], case.events[-1]
    if created.session == deleted.session:
        return (
            "The controller still acts in that epoch while the others elect its successor: it has to stop first, and "
            "to report that it has stopped."
        )
    return (
        "Only the owner gives up the office. A broker that deletes the znode of another takes a controller away that "
        "lives and does not know it."
    )
