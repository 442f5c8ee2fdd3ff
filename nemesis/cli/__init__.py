"""The command line: ``app`` finds the command, ``commands`` has one module for each.

* ``options``          options that several commands share
* ``completions``      what a shell offers behind arguments and options
* ``console``          results on stdout, progress and errors on stderr, JSON
* ``streams``          encoding and errors of standard output and error
* ``outcome``, ``outcome_lines``, ``families``   the outcome of a check, printed; its lines; families of properties
* ``pasted``           commands that a person copies from the console
* ``kernel_cache``     compiles the kernels for large histories, once after installation
* ``mutant_modes``     the modes of ``nemesis mutants``, and the options of each
* ``generated_mutants``   the mutation score
* ``guided_comparison``   guided against blind exploration
* ``search_request``   the options of a search over many seeds, checked
"""
