"""Mutants that chance chooses: one position of the reference is changed, in memory, at random but repeatable.

They measure what the harness finds without a hint: the mutation score (``nemesis.searching.generated``).

* ``mutation``    a mutant as a value, and its identity (start here)
* ``sources``     which code may change; ``trees`` has helpers over syntax trees
* ``operators``   what a mutant changes, one function per operator
* ``draw``        all mutants of some modules, and a draw by seed
* ``planting``    a mutant becomes the code of this process
* ``line_coverage``   which statements a run of the unmodified reference executes

``nemesis.mutants.probe`` counts at the changed code: did it run, would the original have done something else.
"""
