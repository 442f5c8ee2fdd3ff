"""Registers: does any order of their versions explain what was read?

A register shows its last version only, so most of the order of its versions is open. The history keeps a model if
the writes of each key can be ordered so that no cycle arises that the model forbids.

* ``problem``        what has to be ordered, and what is certain (start here)
* ``witness``        a serial order, built in one pass: most correct histories have one that is easy to see
* ``bits``, ``forbidden``   sets of transactions as bits; which edges close a forbidden cycle
* ``forcing``        orders that follow from reachability, to a fixpoint
* ``search``         what stays open: a solver proposes orders, and learns from each cycle
* ``contradiction``  why no order exists: the smallest set of cycles that rules all orders out
* ``verdict``        which of these steps a history of registers or lists needs

Sources: Papadimitriou, "The serializability of concurrent database updates" (1979), for polygraphs; Cobra (OSDI 2020),
PolySI (VLDB 2023) and Viper (EuroSys 2023) for constraints and a solver; Biswas and Enea (OOPSLA 2019) for read atomic
and causal consistency; Cerone and Gotsman (2015, 2016) for parallel snapshot isolation and snapshot isolation.
"""
