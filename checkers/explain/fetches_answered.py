"""Why both cannot be: what a client asks for, and what the answer names."""

from __future__ import annotations

from typing import Final

from nemesis.checkers.framework.reason import Case

LEFT_OUT: Final = "An answer leaves out"
"""How a finding about a partition begins that an answer should name."""


def fetches_answered(case: Case) -> str:
    if case.finding.sentence.startswith(LEFT_OUT):
        return (
            "An answer names every partition of a full request, every partition that joins a session, and every "
            "partition that had an error in the answer before. To a client a partition that is left out is as it was."
        )
    if (case.events[-1].fetch_epoch or 0) <= 0:
        return "A full request names all partitions that its client reads from this broker."
    return (
        "A fetch session has the partitions that its client has named and not removed. The broker goes on to read "
        "another one, and the client drops what it reads."
    )
