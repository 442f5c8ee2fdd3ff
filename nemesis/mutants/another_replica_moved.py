"""A broker that is to move some replicas to other log directories moves all of their topic.

The directories are kept by topic and not by partition, so a request for one partition moves its neighbours, too.

Must be caught by: log-dir-moves-end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from nemesis.mutants.base import Mutant, Replacement

Alter = Callable[..., Any]


def _by_topic(correct: Alter) -> Alter:
    def alter_replica_log_dirs(self: Any, targets: Mapping[Any, str]) -> Any:
        by_topic = {key.topic: path for key, path in targets.items()}
        hosted = [key for key in self.hosted.partitions if key.topic in by_topic]
        answers = correct(self, {key: by_topic[key.topic] for key in [*targets, *hosted]})
        return {key: answers[key] for key in targets}

    return alter_replica_log_dirs


MUTANT = Mutant(
    name="another-replica-moved",
    property="log-dir-moves-end",
    summary="a request to move one replica to another log directory moves its topic's other ones, too",
    replacements=(
        Replacement(
            "nemesis.reference.server.replica_manager",
            "ReplicaManager.alter_replica_log_dirs",
            _by_topic,
        ),
    ),
    scenario="log-dirs",
)
