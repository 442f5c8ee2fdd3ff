"""Transactions of producers in our own runs, as clients know them, brokers trace them and files hold them.

* ``check``       what readers of committed records are given, and who is fenced (start here)
* ``produced``    transactions, their records and ends, and the producers of transactional ids, from the events
* ``topics_of_sends``   to which topic a send went, if its name had several
* ``reads``, ``fencing``, ``derivations``   the judges
* ``observed``    numbers: fenced producers, aborted records that were read over, polls during open transactions
* ``dependencies``, ``append_order``   in which order transactions can have been
* ``markers``     markers in logs: coordinator epochs, and partitions of a complete transaction without a marker
* ``kept_markers``   whether files hold the marker of each transaction of which they hold records
* ``epochs_kept`` whether coordinators fence producers without a cause: a check and a property of its own
* ``at_rest``     whether transactions are possible once the faults have ended: a check and a property of its own
* ``stable_at_rest``   whether readers of committed records reach the end of each partition
* ``hanging``     transactions that stay open beyond their time-out; ``open_spans`` says for how long they were open
* ``overdue``     how long a transaction may last, and what excuses one that lasts longer
"""
