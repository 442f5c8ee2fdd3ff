"""Histories from elsewhere: Jepsen's ``history.edn`` and JSON lines in, EDN out.

* ``importing``     a file becomes the raw events of a run (start here); ``exporting`` is the way back
* ``edn``           the notation, read and written
* ``lines``         a file to operations, whatever is damaged
* ``wrappers``      maps around a vector of operations
* ``plain``         histories in the common form, read by compiled code
* ``sessions``      sessions of transactions without times, as dbcop, PolySI and Cobra have them
* ``text_operations`` an operation per line, as Jepsen's ``history.txt`` and its log have it
* ``binary_store``  the blocks of Jepsen's ``test.jepsen``; ``fressian`` reads the values in them
* ``operations``    what a line says
* ``operation_order`` the order of operations, and times that keep it
* ``pairs``         which completion belongs to which invocation
* ``vocabulary``    operations to events and back: ``objects``, ``subkeys``, ``key_values``,
  ``key_maps``, ``totals``, ``transactions``, ``logs``
* ``function_names`` whether a function of another workload changes objects
* ``names``         numbers for keys and values that are none
* ``origins``     the line and the index of each event
* ``problems``      what is wrong with a file, by line

The events are those of ``nemesis.history.events``, so the same checkers, engines and reports serve.
"""
