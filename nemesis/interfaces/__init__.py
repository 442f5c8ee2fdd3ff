"""What a runtime offers to the rest of the harness: start with ``runtime``. ``nemesis.runtimes`` implements it."""
