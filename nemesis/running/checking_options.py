"""How a run is to be checked: the options ``--checkers``, ``--consistency-model``, ``--anomalies``, ``--initial``,
those about keys, ``--engine`` and ``--spark-master``.

``nemesis run`` reads them before anything starts, ``nemesis check`` before it opens a run. Every function raises
``UsageError`` for a value that is not allowed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Final

from nemesis.checkers import CHECKERS, foreign_properties
from nemesis.checkers.cycles.asked_anomalies import ASKED, NOT_DETECTED
from nemesis.checkers.cycles.model_names import SAME, why_not
from nemesis.checkers.cycles.models import MODELS, Guarantee
from nemesis.checkers.foreign import (
    HAS_INITIAL,
    KEYED,
    MODELLED,
    TRANSACTIONAL,
    asked_properties,
)
from nemesis.checkers.framework.engine import Engine
from nemesis.history.foreign.edn import EdnError, loads
from nemesis.history.foreign.names import FIRST_NAME
from nemesis.support.choices import one_of
from nemesis.support.errors import UsageError
from nemesis.support.extras import is_installed, require_package

COUNTER: Final = "counter"
ENGINES: Final[tuple[Engine, ...]] = ("spark", "inline")
SPARK: Final = "spark"
INLINE: Final = "inline"
SPARK_MASTER: Final = re.compile(
    r"local|local\[(\d+|\*)(,\d+)?\]|local-cluster\[.+\]|spark://.+|yarn|k8s://.+"
)


def checker_names(text: str | None, workload: str | None = None) -> list[str] | None:
    """Return the properties in a comma-separated list, ``None`` for all; raises ``UsageError``.

    ``workload``: of a history from elsewhere, which has properties of its own.
    """
    if text is None:
        return None
    allowed = CHECKERS if workload is None else foreign_properties(workload)
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise UsageError(f"--checkers is {text!r}: allowed are {', '.join(sorted(allowed))}")
    for name in names:
        one_of("checker", name, allowed)
    return names


def model_name(name: str | None, workload: str | None) -> str | None:
    """Return the name that ``MODELS`` has for a consistency model, ``None`` if none is asked for.

    Raises ``UsageError`` if the model does not exist or is not judged, or if the workload has no models.
    """
    if name is None:
        return None
    if workload not in MODELLED:
        raise _inapplicable(f"--consistency-model {name}", MODELLED, workload)
    if (reason := why_not(name)) is not None:
        raise UsageError(reason)
    one_of("consistency model", name, {*MODELS, *SAME})
    name = SAME.get(name, name)
    if MODELS[name].guarantee is not Guarantee.NONE and workload not in TRANSACTIONAL:
        raise _inapplicable(f"--consistency-model {name}", TRANSACTIONAL, workload)
    return name


def anomaly_names(
    text: str | None, workload: str | None, *, other_options: Collection[str]
) -> list[str] | None:
    """Return the anomalies in a comma-separated list, ``None`` if none is asked for; raises ``UsageError``.

    ``other_options``: given options that say in another way what counts.
    """
    if text is None:
        return None
    for option in other_options:
        raise UsageError(f"--anomalies {text} and {option} exclude each other: give one of them")
    if workload not in TRANSACTIONAL:
        raise _inapplicable(f"--anomalies {text}", TRANSACTIONAL, workload)
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise UsageError(f"--anomalies is {text!r}: allowed are {', '.join(ASKED)}")
    for name in names:
        if name in NOT_DETECTED:
            raise UsageError(f"the anomaly {name} is not detected: {NOT_DETECTED[name]}")
        one_of("anomaly", name, ASKED)
        if not asked_properties(workload, [name]):
            raise UsageError(f"--anomalies {name}: workload {workload} does not show this anomaly")
    return names


def require_initial(text: str | None, workload: str | None) -> None:
    """Raise ``UsageError`` when the text is not a value, or the workload has no initial value."""
    if text is None:
        return
    if workload not in HAS_INITIAL:
        raise _inapplicable(f"--initial {text}", HAS_INITIAL, workload)
    try:
        value = loads(text)
    except EdnError as error:
        raise UsageError(
            f"--initial is {text!r}, which is not a value ({error}): write it as in the history, 0 or nil say"
        ) from None
    if workload == COUNTER and (type(value) is not int or not 0 <= value < FIRST_NAME):
        raise UsageError(
            f"--initial is {text!r}: a counter begins with a whole number from 0 to 2^62 − 1"
        )


def require_keyed(options: Mapping[str, bool | None], workload: str | None) -> None:
    """Raise ``UsageError`` when an option about keys is given, and the workload has no such keys."""
    for option, value in options.items():
        if value is not None and workload not in KEYED:
            raise _inapplicable(f"--{option}" if value else f"--no-{option}", KEYED, workload)


def _inapplicable(option: str, workloads: Collection[str], workload: str | None) -> UsageError:
    about = "a run of a scenario" if workload is None else f"workload {workload}"
    return UsageError(f"{option} is for {', '.join(sorted(workloads))}, and this is {about}")


def default_engine() -> Engine:
    """Return Spark if it is installed; else the checkers run in this process."""
    return SPARK if is_installed("pyspark") else INLINE


def engine_of(name: str) -> Engine:
    """Return the engine of this name; raises ``UsageError``, also if Spark is not installed."""
    one_of("engine", name, ENGINES)
    if name == SPARK:
        require_package("pyspark", "--engine spark")
    return next(engine for engine in ENGINES if engine == name)


def spark_master_of(url: str | None, engine: str) -> str | None:
    """Return the master to use; raises ``UsageError`` for one that Spark would not know, or that is not asked."""
    if url is None:
        return None
    if engine != "spark":
        raise UsageError(
            f"--spark-master {url} needs --engine spark; here it is {engine}, as for a simulation by default"
        )
    if not SPARK_MASTER.fullmatch(url):
        raise UsageError(
            f"--spark-master is {url!r}: allowed are local, local[N], local[*], spark://HOST:PORT, yarn, k8s://URL"
        )
    return url
