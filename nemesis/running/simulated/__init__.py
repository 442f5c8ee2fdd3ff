"""A run in simulation: ``specification`` decides it, ``run`` executes it, ``stored`` keeps it in a run directory."""
