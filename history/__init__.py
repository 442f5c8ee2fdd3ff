"""The history: everything that clients, brokers, ZooKeeper and the nemesis did in one run.

The room holds the vocabulary that all other packages share, and the files it is kept in:

* ``events``           the words: one flat record type, the kinds of events and their columns (start here)
* ``recorder``         writing events while a run lasts: JSON lines, one ``write()`` per event
* ``schema``           the one Arrow schema of the Parquet history
* ``reader``           reading raw JSON lines (torn tails included) and Parquet segments
* ``encoding``         how Parquet files are written; ``told`` and ``follows``: what they tell of themselves
* ``zookeeper_log``    ZooKeeper's transaction log, read from its files
* ``ingest``           raw JSON lines and the transaction log to Parquet, on Spark or in process
* ``spark``            a context and tasks; ``class_archive`` and ``worker_daemon`` make it start fast
* ``freed_memory``     what tasks free is kept for their next arrays
* ``memory``           a history made of events at hand, without files, ordered as ingest orders them
* ``foreign``          histories from elsewhere: Jepsen's EDN and JSON lines in, EDN out
* ``run_directory``    where a run keeps what

It imports nothing of ours.
"""
