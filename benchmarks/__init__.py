"""Benchmarks: ratios measured in one run, because absolute figures depend on the machine.

``python -m benchmarks`` runs every ``bench_*`` module's ``main()``; ``python -m benchmarks check`` runs one.
"""
