"""Objects on anybody's history: registers, compare-and-set registers, mutexes, sets, queues.

``operations`` makes columns of operations out of events. A register whose values are written once is decided by
``zones`` (told by ``zone_findings``), in the time of a sort; all else by ``search`` with the ``models``, which keeps
what is possible (``checkers.possible``) and may give up. ``registers`` and ``mutex`` are the checks; start with
``registers``. Which of them judges a history is said by its workload (``checkers.foreign``).
"""

from checkers.linearizable.mutex import LinearizableMutex
from checkers.linearizable.registers import LinearizableCasRegister, LinearizableRegister

__all__ = ["LinearizableCasRegister", "LinearizableMutex", "LinearizableRegister"]
