"""What several layers of the harness need, and what needs none of them. A module with one user belongs to that user.

* ``errors``          the exit codes, and which exception leads to which (start here)
* ``choices``         an unknown name becomes one sentence; ``runtime_names`` are the names of our runtimes
* ``detection``       faults that are shorter than the time-out that reveals them
* ``extras``          optional Python packages, and the extra that installs each
* ``interrupts``      Ctrl-C and SIGTERM
* ``java``            the Java runtime, ZooKeeper's jars, and files of Java properties
* ``kafka_logging``   what Kafka brokers log, and to which files
* ``journal``         the undo journal: what a run started on this machine
* ``live_display``    one line of progress
* ``paths``           how paths are shown, and the cache directory
* ``preloaded_library``  C libraries for LD_PRELOAD, compiled on this machine; ``source_address`` is one of them
* ``frame_scanner``   where Kafka's requests begin in a stream, for the proxy and the simulated links
* ``frame_collector``  whole requests of some kinds, so that they can be sent once more
* ``log_damage``      how unsynced ends of logs are damaged, on real and on simulated disks
* ``node_names``      ``broker-1`` and so on
"""
