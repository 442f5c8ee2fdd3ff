"""The mutation score: generated mutants (``nemesis.mutants.generated``) under faults in simulation, and who finds them.

* ``campaign``   many mutants on several processes, from a draw to results (start here)
* ``examine``    one mutant: which runs it gets, and when enough is known
* ``trial``      one run of a mutant, or of the unmodified reference with its line coverage
* ``children``   a forked process for each run, with a deadline and a limit of memory
* ``results``    what is known of each mutant, as JSON lines; a later call goes on with them
* ``score``      the table by module and operator, and the score with its interval
* ``survivors``  reads the arguments of ``docs/survivors.md``
* ``page``       the part of ``docs/scoreboard.md``
"""
