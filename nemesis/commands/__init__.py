"""The commands that need more than a few lines; ``nemesis.cli`` holds the others and puts all on one command line.

* ``speech``   what every command prints with: this package and ``nemesis.cli`` are the only ones that print
* ``options``  options that several commands have, with one spelling
* ``explore``, ``replay``, ``shrink``, ``mutants``   the commands
"""
