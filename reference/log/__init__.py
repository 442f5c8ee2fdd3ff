"""The log of a partition, on disk in Kafka's format.

* ``log``                       Log: what a replica appends, reads and truncates; open this first
* ``local_log``                 its segments on disk: append, roll, cut, sync, delete
* ``log_loader``                opens it and mends what a crash left
* ``log_retention``             which segments may go
* ``log_manager``               all logs of a broker and the work that recurs
* ``log_directory``             one directory of them, its checkpoints, the mark of a clean stop
* ``log_segment``               one file of batches and its indexes; ``file_records`` reads the batches
* ``offset_index``, ``time_index``   from offsets to positions, from times to offsets
* ``transaction_index``         the aborted transactions of a segment
* ``leader_epoch_file_cache``   which leader epoch starts where
* ``log_validator``, ``log_append_info``   which batches may be appended; what an append added
* ``producer_state_manager``    which producers wrote to a log; its parts are ``producer_state_entry``,
  ``producer_append_info``, ``producer_snapshot_file``, ``recent_batches``; ``ongoing_transactions`` is what holds
  the last stable offset; ``verification_state`` is what precedes a transaction
* ``log_cleaner``               compacts logs in the background; its parts are ``log_cleaner_manager``, ``cleaner``,
  ``offset_map``, ``record_filter``, ``cleaned_transactions``
* ``future_logs``, ``delayed_deletion``   replicas that move between directories; files that go after a while
* ``log_config``                the settings of topics
* ``checkpoint``, ``partition_metadata``   Kafka's small files
* ``errors``                    the exception tree; ``storage_errors`` names the directory that failed
"""
