"""The vocabulary of a history: each kind of event is declared once, as a class whose fields are the kind's columns.

Start with ``declaring`` (how a kind is declared), then read the kinds by who writes them: ``brokers``, ``controller``,
``replication``, ``clients``, ``groups``, ``transactions``, ``zookeeper``, ``faults``, ``harness``, ``foreign``. From
the declarations follow the schema page (``page``), what a recorder accepts in simulation and in tests (``checking``),
and the views with which checks read events (``View.of``). The flat record that stores them all is
``nemesis.history.events``.

The brokers do not import this package: it costs nothing where events are recorded in real runs.
"""
