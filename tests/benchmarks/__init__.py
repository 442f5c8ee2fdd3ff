"""Tests of what benchmarks are made with."""
