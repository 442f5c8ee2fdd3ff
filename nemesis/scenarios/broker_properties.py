"""Broker properties on the command line: ``--broker-property NAME=VALUE``, as often as needed.

A value is what it looks like: ``true`` and ``false``, a whole number, or a text. Whether the target knows the property
and takes the value is the target's to say.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from nemesis.support.errors import UsageError

OPTION: Final = "--broker-property"
_WHOLE_NUMBER: Final = re.compile(r"-?[0-9]{1,19}")

Property = str | int | bool
BrokerProperties = Mapping[str, Property]


def parse(texts: Iterable[str]) -> dict[str, Property]:
    """Return the properties; raises ``UsageError`` for one without a name, or named twice."""
    properties: dict[str, Property] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise UsageError(f"{OPTION} is {text!r}: it has to be NAME=VALUE")
        if name in properties:
            raise UsageError(f"{OPTION} names {name} twice")
        properties[name] = _value(value)
    return properties


def arguments(properties: BrokerProperties) -> list[str]:
    """Return the arguments that ``parse`` reads these from."""
    return [word for item in properties.items() for word in (OPTION, _text(*item))]


def _value(text: str) -> Property:
    if text in ("true", "false"):
        return text == "true"
    return int(text) if _WHOLE_NUMBER.fullmatch(text) else text


def _text(name: str, value: Property) -> str:
    return f"{name}={str(value).lower() if isinstance(value, bool) else value}"
