"""Why both cannot be: an office that is held, and its end."""

from __future__ import annotations

from nemesis.checkers.framework.reason import Case
from nemesis.history.events import Kind


def office_kept(case: Case) -> str:
    if case.events[-1].kind == Kind.CONTROLLER_ELECTED:
        return (
            "A controller resigns when another broker has won a newer epoch. This broker used the same epoch again "
            "later, so no other broker had won one. The cluster was without a controller for no reason."
        )
    created, deleted = case.events[0], case.events[-1]
    if created.session == deleted.session:
        return (
            "The controller must stop its work, and record that, before it deletes the znode. Otherwise it still "
            "acts in its epoch while the other brokers elect a successor."
        )
    return (
        "Only the controller itself may delete /controller. If another broker deletes it, the controller still "
        "lives, and does not know that it is no longer controller."
    )
