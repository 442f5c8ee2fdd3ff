"""What can be wrong with a history on disk.

::

    HistoryError          one sentence for the user, naming the file; ``nemesis`` ends with 254
    ├── MissingHistoryError    there is no such run, or a file of it is gone
    ├── ForeignHistoryError    the path exists, but nemesis did not write it (or a newer one did)
    └── DamagedHistoryError    ours, but the bytes are not what was written
    SparkError                 Spark cannot start: the machine's fault, not the history's

A source that is incomplete but readable (a torn file in ``raw/``) is none of these: it becomes a
*problem* of the ingested history, which makes verdicts ``unknown``.
"""


class HistoryError(Exception):
    """A history cannot be used at all. The message is one sentence that names the file."""


class MissingHistoryError(HistoryError):
    """A run, or a file that every run has, does not exist."""


class ForeignHistoryError(HistoryError):
    """The path holds no history of ours, or one of a format that this version does not know."""


class DamagedHistoryError(HistoryError):
    """A file of ours does not hold what was written into it."""


class SparkError(Exception):
    """Spark cannot start (no Java, an unknown master). The message is one sentence."""
