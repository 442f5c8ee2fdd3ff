"""Many simulated runs in search of a finding.

* ``simulate``     one simulated run and its verdict, in memory (start here)
* ``explore``      many seeds, each with other faults and another schedule
* ``shrink``       the smallest run that still shows a finding
* ``replay``       a stored run again
* ``generated``    the mutation score: mutants that chance chooses
* ``guidance``     what planted bugs cost to find, guided and blind
* ``page_parts``   parts of the page of the scoreboard, each written by a command of its own
* ``scoreboard``   which planted bugs are caught, by which property, after how many seeds
"""
