"""Whole clusters in one process on virtual time: the same seed gives the same run, event for event.

The code under test is unmodified; what it touches of the world is simulated. Read ``loop`` first, then ``node``.

* ``loop``        virtual time, turns of processes, seeded deviations; ``task`` what makes asyncio's sets deterministic;
  ``disposal`` the end
* ``incarnation``   one process of a simulated node, from its start to its death
* ``node``        what kill, pause and resume mean for tasks in one thread
* ``network``     ordered streams between hosts; ``links`` what can be held, delayed and reset; ``transport`` one end,
  ``server`` a listener; ``power`` what peers meet when there is none; ``request_copies`` requests that arrive twice
* ``files``, ``fenced_disk``   what a power cut leaves; the disk of one incarnation
* ``disk``        files with a page cache, torn and lost writes; ``clock`` wall clocks that skew and drift
* ``zookeeper``   an ensemble with sessions, watches and a transaction log
* ``codec``       messages that cross by reference instead of being encoded
* ``guard``       an error for whoever touches the real world from inside a node
* ``randomness``  separate named streams of random numbers
* ``memory_record``  the events; ``trace_hash`` one number for them all; ``node_logs`` what nodes print

The nodes of a cluster are put together by ``nemesis.runtimes.simulation``.
"""
