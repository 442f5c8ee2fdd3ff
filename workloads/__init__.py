"""What clients do to the cluster while it breaks.

* ``base``             the interface that a run sees, and what a workload is given (start here)
* ``produce_consume``  producers, consumers, topics created under faults, final reads to the end; its parts are
  ``producers``, ``consumers``, ``reads``, ``final_reads``, ``topic_creation``, ``clients``, ``partitions``,
  ``record_values``, ``administrators``, ``admin_requests``,
  ``record_deletion``, ``log_dir_moves``, ``querying``, ``final_questions``, ``produce_consume_options``
* ``topics``           the same, while topics are created, grown, deleted and created again
* ``reassignment``     the same, while replicas are moved and leaders elected, of ``internal_topics``, too
* ``groups``           the same, while consumers share the partitions in groups; ``group_processes``
  are their processes, ``group_members`` is one member, ``member_requests`` keeps it in its group,
  ``group_offsets`` commits and reads offsets, ``topic_growth`` adds partitions
* ``transactions``     the same, while producers write in transactions; ``transactors`` and ``transformers`` are
  their processes, ``producer_transactions`` records what they do, ``transformer_members`` gives a transformer
  its partitions, ``committed_reads`` reads at the end
* ``processes``        the client processes, which faults kill and pause
* ``operations``       records operations, and paces the processes that carry them out
* ``kafka``            the Kafka client that workloads use: asyncio and kio, one attempt per operation

A workload records every operation as ``invoke`` before it is sent, then exactly one of ``ok``, ``fail`` (certainly
did not happen) and ``info`` (unknown). It takes its clock from the event loop, its randomness from the seed, and
nothing else from the process it runs in, so the same code runs in simulation.
"""

from typing import Final

from nemesis.registry import Registry, by_name
from nemesis.workloads.base import Workload, WorkloadContext, WorkloadFactory
from nemesis.workloads.groups import Groups
from nemesis.workloads.produce_consume import ProduceConsume
from nemesis.workloads.reassignment import Reassignment
from nemesis.workloads.topics import Topics
from nemesis.workloads.transactions import Transactions

__all__ = ["WORKLOADS", "Workload", "WorkloadContext", "WorkloadFactory"]

WORKLOADS: Final[Registry[WorkloadFactory]] = Registry(
    "workload", by_name((ProduceConsume, Groups, Reassignment, Topics, Transactions))
)
"""Every workload by the name that scenarios use."""
