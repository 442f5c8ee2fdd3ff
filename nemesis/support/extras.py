"""The optional parts of the package: which extra brings a Python package that is missing, in one sentence."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from types import MappingProxyType
from typing import Final

from nemesis.support.errors import MissingRequirement

DISTRIBUTION: Final = "nemesis-kafka"
EXTRAS: Final[Mapping[str, str]] = MappingProxyType(
    {"pyspark": "spark", "numba": "kernels", "scipy": "kernels", "hypothesis": "testing"}
)
"""By the name under which a Python package is imported, our extra that installs it."""


def is_installed(package: str) -> bool:
    """Return whether the Python package is installed; does not import it."""
    return find_spec(package) is not None


def require_package(package: str, purpose: str, extra: str | None = None) -> None:
    """Raise ``MissingRequirement`` if the Python package is missing; ``purpose`` says what needs it."""
    if not is_installed(package):
        raise MissingRequirement(f"{purpose} needs {package}: {cure(extra or EXTRAS[package])}")


def sentence_about(error: ModuleNotFoundError) -> str | None:
    """Return the sentence about an optional package that could not be imported; None for any other module."""
    package = (error.name or "").partition(".")[0]
    extra = EXTRAS.get(package)
    return None if extra is None else f"the Python package {package} is missing: {cure(extra)}"


def cure(extra: str) -> str:
    """Return how the extra is installed."""
    return f"install it with `pip install '{DISTRIBUTION}[{extra}]'`, or run `make install` in a checkout"
