"""``history/`` once more from the raw files of a run, before it is judged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nemesis.history.errors import HistoryError, MissingHistoryError
from nemesis.history.manifest import read_manifest
from nemesis.history.raw_sources import RawSources, no_events
from nemesis.history.run_directory import RunDirectory

if TYPE_CHECKING:
    from nemesis.history.ingest import Spark


def renew(run: RunDirectory, spark: Spark | None = None) -> None:
    """Build ``history/`` from the raw files; without raw files, check that the existing ``history/`` can be read.

    So a later version, with other columns, can judge an old run. Raises HistoryError when neither is possible.
    """
    if not RawSources.of(run).is_empty:
        # Imported here: an external history has no raw files, and readers of all formats take their time.
        from nemesis.history.ingest import ingest

        ingest(run, spark)
        return
    try:
        read_manifest(run.history)
    except MissingHistoryError:
        raise MissingHistoryError(no_events(run)) from None
    except HistoryError as error:
        raise type(error)(f"{error}, and {run.raw} holds no events to make it from again") from None
