"""From a recorded run, or another system's history, to a verdict and a report.

* ``judge``        ingest, check, render (start here)
* ``known``        behaviour of Kafka that breaks a property and is known, with its reference
* ``objectives``   the longest outages that a scenario accepts, each a verdict of its own
* ``planted``      the story of a run's planted bug, for its report
* ``ignored_settings``  what was set for brokers and reference brokers do not know
* ``foreign``      a history of another system becomes a run, and its outcome speaks in that system's names
* ``foreign_lines`` names the lines of the file in its findings
* ``fetch``        a run in an object store is judged from here
* ``warm_spark``   Spark's early start
"""
