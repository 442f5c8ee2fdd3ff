"""The history: everything that clients, brokers, ZooKeeper and the nemesis did in one run.

The package holds the vocabulary that all other packages share, and the files of a history:

* ``events``           one flat record type, the kinds of events and their columns (start here)
* ``sources``          where events come from: what a target can observe
* ``vocabulary``       each kind of event, declared once with its columns and typed views
* ``recorder``         writes events during a run: JSON lines, one ``write()`` per event
* ``schema``           the one Arrow schema of the Parquet history; ``older_formats`` reads earlier ones as today's
* ``raw_lines``        reads raw JSON lines, torn tails included
* ``reader``           opens a history: its ``manifest``, and ``row_group``, ``stored_row_group`` for its rows
* ``encoding``         how Parquet files are written; ``statistics`` and ``dependencies`` what their footers record
* ``zookeeper_log``    ZooKeeper's transaction log, read from its files
* ``zookeeper_ensemble``, ``znodes``   what all members committed; from transactions to events
* ``quorum_log``, ``quorum_records``, ``quorum_events``   what a KRaft quorum committed, its records, their events;
  ``quorum_files`` names its files
* ``broker_logs``      what Kafka brokers log of their replicas, as events; ``topic_ids`` spells their topics' ids
* ``stored_logs``, ``stored_companions``   the logs of stopped brokers, read from their files, and what is beside them
* ``stored_markers``   the markers of transactions in such logs
* ``renewal``          ``history/`` once more, before it is judged
* ``ingest``           from ``raw_sources`` to Parquet, on Spark or in process, in two steps: ``sorted_pieces``, then
  ``buckets``; ``drafts`` holds files that are not complete yet
* ``spark``, ``spark_cluster``   a context and tasks, on this machine or on others
* ``class_archive``, ``class_archiver``, ``worker_daemon``, ``java_locale``   how Spark starts fast, in UTF-8
* ``interruptible``    calls that Ctrl-C ends at once
* ``freed_memory``     the memory that tasks free is kept for their next arrays
* ``lean_numba``       numba, without libraries that it would import for nothing
* ``memory``           a history of events in memory, without files, in ingest's order
* ``foreign``          other systems' histories: Jepsen's EDN and JSON lines in, EDN out
* ``run_directory``    the files of a run; ``remote`` the same on object stores
* ``errors``           what can be wrong with a history on disk

It imports nothing else of this repository.
"""
