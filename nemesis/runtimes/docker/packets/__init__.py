"""Packet faults in the network namespaces of containers.

* ``packet_rules``    ``PacketRules``: what the Docker runtime calls (start here)
* ``rules``           from what is in force on the links to rules: pure
* ``chain``           our chains in one namespace, replaced as a whole
* ``handler``         the process that delays, repeats and reorders; ``handler_process`` starts and watches it,
  ``shaping`` decides, ``netlink`` speaks to the kernel
* ``bandwidth``, ``connections``   token buckets; resets
* ``namespace``       to run a command or open a socket inside a container's network
* ``kernel``          what of all that works on this machine

This file imports nothing: the handler, a process of its own, imports this package.
"""
