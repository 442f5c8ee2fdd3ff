"""Scenarios: which value a run has on each axis. The YAML files here are ours; users write their own.

* ``scenario``            what a scenario file may contain (start here)
* ``broker_properties``   ``NAME=VALUE`` of the command line
* ``pages``               generates ``docs/scenarios.md`` and its JSON schema
* ``axes``                the registries of all axes: faults, checkers, workloads, targets, runtimes, mutants
"""
