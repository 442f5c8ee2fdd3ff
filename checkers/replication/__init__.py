"""What replicas owe each other: high watermarks that are true, and logs that agree.

Judged from the brokers' own traces, never from what a leader believes of its followers.

* ``high_watermark``  hw-bounded: start here; ``hw_grows``.
* ``commitment``      what was once below a high watermark stays: no-truncation-below-hw, ack-after-commit.
* ``replica_log``     the model of one replica's log: which leader epoch wrote each offset.
* ``logs``            leader-completeness and log-matching, over those models.
"""
