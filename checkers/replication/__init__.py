"""What replicas owe each other: high watermarks that are true, and logs that agree.

Judged from the brokers' own traces, never from what a leader believes of its followers.

* ``high_watermark``    hw-bounded (start here); ``claims`` proves most large segments without a second look
* ``hw_grows``          high watermarks of one leader never fall
* ``hw_sampled``        both of high watermarks of brokers that do not trace, as far as they are sampled
* ``isr_joins``         replicas that join an ISR have caught up
* ``isr_epochs``        leaders state with which broker epochs their followers fetch
* ``commitment``        records below a high watermark stay: no-truncation-below-hw, ack-after-commit
* ``logs``              leader-completeness and log-matching
* ``own_log``           a leader never cuts its log; a high watermark is never behind the end of the replica's own log
* ``min_isr``           an acknowledgement has min.insync.replicas behind it
* ``log_start``         records at the start of a log go only by agreement
* ``epoch_ends``        a leader answers where leader epochs end as its log has it; ``lineage`` models what it knows
* ``final_logs``        the files of stopped brokers agree
* ``log_files``         what stands beside the batches of a log agrees with them; ``stored_replica`` has its rows
* ``replica_log``       the model of one replica's log: which leader epoch wrote each offset
* ``steps``             the rows of a segment, compressed to changes of logs
* ``replica_rows``      the rows of a partition as arrays
* ``removed_replicas``  when a replica was taken away from a broker
"""
