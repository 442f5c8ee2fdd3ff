"""Transactions of producers, as brokers trace them and files hold them.

* ``markers``   markers in logs: coordinator epochs, and partitions of a complete transaction without a marker
* ``hanging``   transactions that stay open beyond their time-out
"""
