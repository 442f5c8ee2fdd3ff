"""What can go wrong inside the controller, beside ZooKeeper's errors.

ControllerError
├── IllegalStateError      our bug: an invariant of the controller does not hold. The controller gives up its office
└── StateChangeError       a partition or replica could not change its state; it stays as it was
"""

from __future__ import annotations


class ControllerError(Exception):
    """Base of the controller's own errors."""


class IllegalStateError(ControllerError):
    """Raised where going on would act on wrong knowledge, for instance on a batch that was never sent."""


class StateChangeError(ControllerError):
    """Expected while brokers are down: no replica is eligible, or the transition is not a legal one."""
