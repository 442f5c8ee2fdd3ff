"""The log of a partition, on disk in Kafka's format.

* ``log``                       Log: what a replica appends, reads and truncates; open this first
* ``log_manager``               all logs of a broker, the high watermark checkpoint
* ``log_segment``               one file of batches; recovery of the last one after a crash
* ``offset_index``              from offsets to positions of a segment
* ``leader_epoch_file_cache``   which leader epoch starts where
* ``checkpoint``, ``partition_metadata``   Kafka's small files
* ``errors``                    the exception tree
"""
