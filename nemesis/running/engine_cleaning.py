"""The part of ``nemesis clean`` that asks the Docker engine.

A machine without an engine, or one that this user may not use, has nothing of ours there, unless a journal says
otherwise: then the run is not undone, and its journal stays.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from docker import DockerClient

from nemesis.runtimes.docker import leftovers
from nemesis.runtimes.docker.engine import connect
from nemesis.runtimes.docker.engine_calls import FAILURES, reason
from nemesis.runtimes.docker.fragments import building, remove_fragments
from nemesis.runtimes.docker.leftovers import Removed
from nemesis.support.errors import MissingRequirement


class EngineCleaning:
    """Removes runs, one by one, and remembers what became of it."""

    def __init__(self, client: DockerClient | MissingRequirement) -> None:
        """``client`` is the engine, or why there is none."""
        self._client = client
        self.removed: list[str] = []
        self.left: list[str] = []
        self.lost: list[str] = []
        """Records that could not be brought home, a sentence each."""

    def remove(self, run_ids: Sequence[str]) -> bool:
        """Bring home and remove what these runs have there; return whether nothing of them is left."""
        results = [self._remove(run_id) for run_id in run_ids]  # each, whatever comes of another
        return all(results)

    def remove_orphans(self) -> list[str]:
        """Remove what is there of dead harnesses whose journal is gone; return the runs."""
        if isinstance(self._client, MissingRequirement):
            return []
        try:
            run_ids = leftovers.orphaned_runs(self._client)
        except FAILURES as error:
            self.left.append(f"what has no journal: {reason(error)}")
            return []
        self.remove(run_ids)
        return run_ids

    def remove_fragments(self) -> None:
        """Remove what broken-off builds of the nodes' image have left, unless somebody builds at this moment."""
        if isinstance(self._client, MissingRequirement):
            return
        try:
            with building(wait=False) as is_our_turn:
                done = remove_fragments(self._client) if is_our_turn else Removed()
        except (*FAILURES, MissingRequirement) as error:
            self.left.append(f"what broken-off builds left: {reason(error)}")
            return
        self._note(done)

    def _remove(self, run_id: str) -> bool:
        if isinstance(self._client, MissingRequirement):
            self.left.append(f"containers of run {run_id}: {self._client}")
            return False
        try:
            self.lost += leftovers.rescue(self._client, run_id)
            done = leftovers.remove_run(self._client, run_id)
        except FAILURES as error:
            self.left.append(f"containers of run {run_id}: {reason(error)}")
            return False
        self._note(done)
        return not done.left

    def _note(self, done: Removed) -> None:
        self.removed += done.names
        self.left += done.left


@contextmanager
def engine_cleaning() -> Iterator[EngineCleaning]:
    """Connect to the engine, if there is one."""
    try:
        client = connect()
    except MissingRequirement as error:
        yield EngineCleaning(error)
        return
    try:
        yield EngineCleaning(client)
    finally:
        client.close()
