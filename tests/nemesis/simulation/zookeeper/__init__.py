"""Tests of the simulated ZooKeeper, on the simulation's loop."""
