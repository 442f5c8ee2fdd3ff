"""How a history spells the id of a topic: as a UUID in hexadecimal digits."""

from __future__ import annotations

from base64 import urlsafe_b64decode
from uuid import UUID


def topic_id_of(text: str) -> str:
    """Return the id that Kafka's znodes and logs write in URL-safe base64; another text as it is."""
    try:
        return str(UUID(bytes=urlsafe_b64decode(text + "=" * (-len(text) % 4))))
    except ValueError:
        return text
