"""The history: everything that clients, brokers, ZooKeeper and the nemesis did in one run.

The package holds the vocabulary that all other packages share, and the files of a history:

* ``events``           one flat record type, the kinds of events and their columns (start here)
* ``vocabulary``       each kind of event, declared once with its columns and typed views
* ``recorder``         writes events during a run: JSON lines, one ``write()`` per event
* ``schema``           the one Arrow schema of the Parquet history; ``older_formats`` reads earlier ones as today's
* ``reader``           reads raw files (``raw_lines``, torn tails included) and Parquet segments
* ``encoding``         how Parquet files are written; ``statistics`` and ``dependencies`` what their footers record
* ``zookeeper_log``    ZooKeeper's transaction log, read from its files
* ``zookeeper_ensemble``, ``znodes``   what all members committed; from transactions to events
* ``stored_logs``      the logs of stopped brokers, read from their files
* ``ingest``           raw JSON lines and the transaction log to Parquet, on Spark or in process
* ``spark``, ``spark_cluster``   a context and tasks, on this machine or on others
* ``class_archive``, ``class_archiver``, ``worker_daemon``, ``java_locale``   how Spark starts fast, in UTF-8
* ``interruptible``    calls that Ctrl-C ends at once
* ``freed_memory``     the memory that tasks free is kept for their next arrays
* ``memory``           a history of events at hand, without files, in ingest's order
* ``foreign``          other systems' histories: Jepsen's EDN and JSON lines in, EDN out
* ``run_directory``    the files of a run; ``remote`` the same on object stores
* ``errors``           what can be wrong with a history on disk

It imports nothing else of this repository.
"""
