"""How long replicas without traffic may take to agree on their offsets: a sum of waits of the configuration.

The leader's log does not grow any more. A follower in the ISR waits at worst for these, one after the other:

* its last request, or the answer, was lost: ``replica.socket.timeout.ms``, then ``replica.fetch.backoff.ms``;
* its next fetch tells the leader where its log ends, which may raise the leader's high watermark. With nothing to
  read, the leader answers after ``replica.fetch.wait.max.ms``, and the answer states high watermark and log start;
* another follower's fetch may have been answered just before that: its next answer comes after
  ``replica.fetch.wait.max.ms`` once more.

What happens between the waits takes no time of its own, as in ``nemesis.checkers.liveness.recovery_bound``.
"""

from __future__ import annotations

from collections.abc import Mapping

from nemesis.history.vocabulary.harness import FETCH_BACKOFF, FETCH_TIMEOUT, FETCH_WAIT


def rest_bound_ms(settings: Mapping[str, int]) -> int | None:
    """Return the bound for these settings, each in milliseconds; None if one of them is missing."""
    if not settings.keys() >= {FETCH_TIMEOUT, FETCH_BACKOFF, FETCH_WAIT}:
        return None
    return settings[FETCH_TIMEOUT] + settings[FETCH_BACKOFF] + 2 * settings[FETCH_WAIT]
