"""The commands that need more than a few lines; ``nemesis.cli`` holds the others and puts all on one command line.

* ``speech``   what every command prints with: this package and ``nemesis.cli`` are the only ones that print
* ``options``  options that several commands have, with one spelling and one range
* ``searching``  from options to an exploration of many seeds
* ``explore``, ``replay``, ``shrink``, ``mutants``   the commands
"""
