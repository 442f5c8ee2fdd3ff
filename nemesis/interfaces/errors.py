"""What a runtime raises. A failure of the harness is never a violation of a property, nor a pass.

::

    Exception
    ├── RuntimeFailure        a process did not start, a proxy died: the harness fails
    │   ├── NodeExited        a node that was started has exited by itself: a result of the run
    │   └── FaultLost         the effect of a fault in force is not known: the run is unknown
    └── FaultUnsupported      a runtime lacks a part that a fault needs: raised before the run
"""

from __future__ import annotations


class RuntimeFailure(Exception):
    """The runtime itself broke (a process did not start, a proxy died): the harness fails, the verdict does not."""


class NodeExited(RuntimeFailure):
    """A node that was started has exited by itself. During a run that is an event of the history, not an error."""


class FaultLost(RuntimeFailure):
    """What carried out a fault in force has failed, so the effect of the fault is not known.

    The run goes on and is ``unknown``: the fault's heal is recorded as not verified, with this sentence.
    """


class FaultUnsupported(Exception):
    """A runtime lacks a part that a planned fault needs. Raised before the run starts."""
