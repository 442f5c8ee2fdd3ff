"""From a recorded run, or another system's history, to a verdict and a report.

* ``judge``        ingest, check, render (start here)
* ``foreign``      a history of another system becomes a run, and its outcome speaks in that system's names
* ``fetch``        a run in an object store is judged from here
* ``warm_spark``   Spark's early start
"""
