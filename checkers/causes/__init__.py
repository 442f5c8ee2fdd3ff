"""What stopped a partition: the chain from the last relevant write to the step that never came.

A liveness violation shows a symptom: an ISR that is not full, a client that is refused. The events around it show which
step of the recovery is missing. Each module looks at one kind of step; the chain ends with what was expected next. What
the events do not record is stated as not recorded, and never guessed. Only violations cost anything.

* ``find``             start here: the causes of failed convergence checks and of late recoveries
* ``surroundings``     which events are read, by tasks over row groups
* ``view``             what had happened up to a time
* ``chain``            links of a cause, and the sentences of a cause that cannot be named
* ``partitions``       the last state of a partition, and what about it is not as it has to be
* ``states``           the last write of a partition's state
* ``registrations``    a broker that does not register
* ``requests``         a control request that was never sent, answered or accepted
* ``roles``            a broker that does not become leader or follower
* ``replicas``         a replica that does not return to the ISR
* ``proposals``        a proposed ISR that is not committed
* ``metadata``         metadata that do not become what ZooKeeper has
"""
