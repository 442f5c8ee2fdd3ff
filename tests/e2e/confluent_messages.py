"""What a confluent-kafka consumer delivers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from confluent_kafka import Message


def records(messages: Iterable[Message]) -> Iterator[Message]:
    """Yield the messages; fail on an error among them."""
    for message in messages:
        assert message.error() is None, message.error()
        yield message
