"""Transactions: do their reads and writes admit an order that the consistency model asks for?"""

from checkers.cycles.check import ListAppend, RwRegister
from checkers.cycles.models import MODELS, Model

__all__ = ["MODELS", "ListAppend", "Model", "RwRegister"]
