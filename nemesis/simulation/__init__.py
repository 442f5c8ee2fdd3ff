"""Whole clusters in one process on virtual time: the same seed gives the same run, event for event.

The code under test is unmodified; what it touches of the world is simulated. Read ``loop`` first, then ``node``.

* ``loop``        virtual time, turns of lives, seeded deviations; ``task`` what makes asyncio's sets deterministic;
  ``disposal`` the end
* ``node``        what kill, pause and resume mean for tasks in one thread
* ``network``     ordered streams between hosts; ``links`` what can be held, delayed and reset; ``transport`` one end,
  ``server`` a listener; ``power`` what peers meet when there is none
* ``disk``        files with a page cache, torn and lost writes; ``clock`` wall clocks that skew and drift
* ``zookeeper``   an ensemble with sessions, watches and a transaction log
* ``codec``       messages that cross by reference instead of being encoded
* ``guard``       an error for whoever touches the real world from inside a node
* ``randomness``  separate named streams of random numbers
* ``order``       everything that decides a run; ``run`` from an order to a verdict; ``stored`` in a directory
* ``memory_record``  the events; ``trace_hash`` one number for them all; ``onlooker`` progress, learnt from them alone

The nodes of a cluster are put together by ``nemesis.runtimes.simulation``.
"""
