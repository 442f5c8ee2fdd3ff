"""The harness: runs a cluster, breaks it on purpose, records everything and asks the checkers.

* ``run``           one run from an empty directory to a recorded history, phase by phase (start here)
* ``judge``         from the record to verdict and report
* ``cli``           the commands; ``preflight`` checks what was asked before anything starts, ``launch`` starts it
* ``scenario``      what a scenario file may say; ours lie in ``scenarios``
* ``targets``       what is run: the reference cluster
* ``runtimes``      where it is run: processes on this machine, containers, or simulated
* ``simulation``    the simulated world; ``replay`` repeats a run of it
* ``explore``       many simulated runs in search of a finding; ``shrink`` makes one small; ``scoreboard`` of mutants
* ``testing``       the simulated cluster in a user's own tests
* ``faults``        what is broken: plans, grudges, symbolic targets, measured effects
* ``convergence``   whether the cluster is whole again after the heal
* ``mutants``       planted bugs, one module each
* ``journal``       what must be undone, on disk; ``clean`` undoes it; ``doctor`` says what this machine lacks
"""
