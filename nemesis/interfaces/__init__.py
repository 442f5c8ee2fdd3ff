"""What a runtime offers to the rest of the harness. Implementations are in ``nemesis.runtimes``; start with ``runtime``."""
