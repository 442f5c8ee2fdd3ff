"""What clients see of a partition's log: the queue anomalies.

Judged from send and poll operations, so they also hold for a system that emits no traces. The definitions are at the
head of ``client_log``, the check; start there.

* the walk over a partition: ``topic_incarnations`` tells a topic's incarnations apart, ``partition_operations`` gathers
  what clients did, ``send_anomalies``, ``polls`` and ``withheld`` hold one pure function per anomaly, ``compaction``,
  ``gaps`` and ``high_watermarks`` what they ask, ``report`` puts it together
* logs of other systems, of which only sends and polls are known, also in transactions: ``offset_log``, ``read_to_end``,
  ``doubtful_transactions``, ``polls_in_doubt``
* partitions of any size: ``certificate`` says how; ``sections`` (what is read together), ``survey`` (one row group),
  ``chain`` (their order), ``cells`` (what stands at which offset), ``value_ranges`` (values at several),
  ``suspect_operations`` (what is walked); ``partition_rows``, ``records``, ``trimmed``, ``number_range``,
  ``offset_cells`` and ``kernels`` are their columns, excerpts, places, and loops
"""

from nemesis.checkers.log.client_log import ClientLog

__all__ = ["ClientLog"]
