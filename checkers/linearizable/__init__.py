"""Objects on anybody's history: registers, mutexes, sets, queues, counters, generators of ids, banks.

* ``registers``, ``mutex``, ``sets``, ``queues``   the checks, with the prose of their properties (start here)
* ``key_values``                                   texts that are put, appended to and read
* ``multi_registers``                              transactions over several registers
* ``counters``, ``unique_ids``, ``banks``          checks of sums and of ids
* ``eventual_counters``, ``subset_sums``           counters of replicas; what some of several amounts make together
* ``causal_reverse``                                 inserted values that are read without older ones
* ``monotonic_keys``, ``predicate_inserts``         keys that never fall; inserts that exclude each other
* ``subkeys``                                        keys that a client inserts one after the other
* ``object_check``, ``object_operations``, ``elements``   events → columns of operations; elements of lists
* ``joining``                                      rows of an operation, joined into one
* ``pairing``                                      which completion belongs to which invocation, compiled
* ``register_zones``, ``zone_walk``, ``zone_findings``   registers whose values are written once, in the time of a sort
* ``search``                                       all else, with ``nemesis.checkers.possible``; may give up
* ``order_walk``                                   orders of registers, compiled, for many operations
* ``depth_search``                                 the same for states that are not single numbers
* ``queue_search``                                queues with dequeues in doubt
* ``set_states``, ``queue_states``                 what became of each element
* ``set_order``, ``queue_order``                   whether one order of all operations explains that
* ``element_findings``, ``phrases``                   findings about elements; findings in words

Which of them judges a history is said by its workload (``nemesis.checkers.foreign``).
"""
