"""The log of a partition, on disk in Kafka's format.

* ``log``                       Log: what a replica appends, reads and truncates; open this first
* ``local_log``                 its segments on disk: append, roll, cut, sync, delete
* ``log_loader``                opens it and mends what a crash left
* ``log_retention``             which segments may go
* ``log_manager``               all logs of a broker and the work that recurs
* ``log_directory``             one directory of them, its checkpoints, the mark of a clean stop
* ``log_segment``               one file of batches and its two indexes; ``file_records`` reads the batches
* ``offset_index``, ``time_index``   from offsets to positions, from times to offsets
* ``leader_epoch_file_cache``   which leader epoch starts where
* ``log_config``                the settings of topics
* ``checkpoint``, ``partition_metadata``   Kafka's small files
* ``errors``                    the exception tree
"""
