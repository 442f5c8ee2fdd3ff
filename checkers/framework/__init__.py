"""How properties are checked, apart from what they promise.

* ``fold``            the shapes of a check (start here); ``event_list`` the simplest one, which keeps events
* ``segment``         what a check sees of a history
* ``columns``, ``arrays``   the vectors behind a segment; ``dependencies`` those that are looked up instead of decoded
* ``engine``          runs checks on Spark or in process; ``rounds`` runs those whose keys are too large for one task
* ``compiled``, ``compiler``   kernels that numba compiles, and whether it is installed
* ``components``   connected components of a graph
* ``nouns``   the noun behind a count
* ``asked``           what a user asks of the checks of an external history
* ``property``        a property as one object; ``reason`` what its explanation starts from
* ``model``           verdicts, findings, results; ``findings`` builds them
"""
