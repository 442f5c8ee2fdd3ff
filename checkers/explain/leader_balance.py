"""Why both cannot be: a controller that looks at the balance in its interval, and a partition that waits longer."""

from __future__ import annotations

from nemesis.checkers.framework.reason import Case


def leaders_balanced(case: Case) -> str:
    if case.is_undecided:
        return "On a machine that may have been late itself, a late election shows nothing about the controller."
    return (
        "The controller looks at the leaders of all partitions once in its interval. It stayed in office, and nothing "
        "else that it handles waits longer than a session may be silent."
    )
