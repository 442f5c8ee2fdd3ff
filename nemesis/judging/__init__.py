"""From a recorded run, or another system's history, to a verdict and a report: start with ``judge``."""
