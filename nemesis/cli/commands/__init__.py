"""The commands, a module each; ``nemesis.cli.app`` imports the one that is asked for and puts it on the command line.

* ``speech``   what every command prints with: this package and ``nemesis.cli.app`` are the only ones that print
* ``outcome``  what a check came to, said
* ``options``  options that several commands have, with one spelling and one range
* ``searching``  from options to an exploration of many seeds
* all others   the commands
"""
