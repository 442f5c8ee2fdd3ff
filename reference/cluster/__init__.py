"""One partition as one broker sees it: the replica it holds, the others it hears of, the ISR, the high watermark.

Open ``partition.py`` first (what a leader does), then ``local_replica.py`` (what every replica does),
``replica.py`` (a follower in the leader's eyes), ``partition_state.py`` (the ISR with a change in flight) and
``partition_reads.py`` (fetches and offsets). Nothing here awaits; tasks and the wire are in
``nemesis.reference.server``.
"""
