"""Requests of an operator through ZooKeeper: once, and to the controller of the moment."""

from __future__ import annotations

from random import Random
from typing import ClassVar, Self

from nemesis.faults.base import DrawRange, Fault, FaultContext, SelectorUnresolved
from nemesis.faults.cluster_view import Ephemeral
from nemesis.interfaces.ensemble import Ensemble


class OperatorFault(Fault, frozen=True, kw_only=True):
    """A fault without options that an operator causes at one moment."""

    needs: ClassVar[frozenset[type]] = frozenset({Ensemble})
    shares_victim: ClassVar[bool] = True

    @classmethod
    def draw(cls, rng: Random, durations: DrawRange) -> Self:
        del rng, durations
        return cls()


async def controller_now(context: FaultContext) -> Ephemeral:
    """Return the owner of ``/controller``; raises ``SelectorUnresolved`` if it has none."""
    controller = await context.view.controller_now()
    if controller is None:
        raise SelectorUnresolved("no broker is the controller")
    return controller
