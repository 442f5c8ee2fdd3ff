"""Transactions: do their reads and writes admit an order that the consistency model asks for?

* ``models``         anomalies and consistency models, as one lattice (start here)
* ``model_names``    other names of models; Elle's models that are not judged
* ``asked_anomalies``    anomalies by Elle's names, and what implies them
* ``check``          the two checks: lists and registers
* ``analysis``       from rows to anomalies: the order of the steps
* ``transaction_rows``, ``transactions``             what the history says: rows, micro-operations
* ``write_index``, ``lookup``                 who wrote what
* ``version_orders``, ``read_index``, ``updates``       versions: their order in lists, who saw them, who replaced them
* ``internal``       contradictions inside one transaction
* ``initial``        reads of an initial value that is not nil
* ``edges``, ``list_edges``, ``register_edges``, ``process_order``  dependencies
* ``key_options``, ``key_orders``, ``key_reasons``  what options state of each key
* ``candidate_components``       where cycles can be at all
* ``skipped_appends``  lists with a part of a transaction
* ``guarantees``     does an order keep what reads have to show; its ``guarantee_requirements``, ``read_versions``,
  ``guarantee_reasons``
* ``states``, ``search``, ``paths``       which cycles there are, the shortest ones
* ``orders``        registers: does any order of their versions keep the model
* ``transaction_names``, ``reasons``, ``existence``, ``explain``     findings, step by step
* ``long_fork``        do reads agree on the order of writes, each to a key of its own
* ``log_transactions``    the check of transactions over logs; its ``log_rows``, ``log_analysis``, ``log_explain``

Source: Adya, "Weak Consistency" (1999); Kingsbury and Alvaro, "Elle: Inferring Isolation Anomalies from Experimental
Observations" (VLDB 2020), for what lists and registers tell of versions.
"""
