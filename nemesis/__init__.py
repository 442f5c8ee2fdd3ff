"""The harness: runs a cluster, breaks it on purpose, records everything and asks the checkers.

* ``cli``         the commands; the only module that prints
* ``run``         one run from start to verdict: warm-up, faults, heal, quiet, final reads, convergence (start here)
* ``scenarios``   YAML files that pick a value on each axis
* ``targets``     what is run: the reference cluster, Apache Kafka
* ``runtimes``    where it is run: processes on this machine, containers, simulation
* ``faults``      what is broken: plans, grudges, symbolic targets, measured effects
* ``mutants``     planted bugs, one module each
"""
