"""What can go wrong with connections.

NetworkError                 an exchange failed; ``definite`` says whether the request certainly had no effect
└── RequestTimedOutError     no answer in time (also a TimeoutError)
CloseConnectionError         a request has no answer in the protocol but the end of its connection
TooManyConnectionsError      a client host has as many connections as it may have
"""

from __future__ import annotations


class NetworkError(Exception):
    """A request was not answered and its connection is closed. Retrying is the caller's decision.

    ``definite`` is true when no byte of the request left this process: the peer cannot have acted on it.
    """

    def __init__(self, message: str, *, definite: bool) -> None:
        super().__init__(message)
        self.definite = definite


class RequestTimedOutError(NetworkError, TimeoutError):
    """No answer within the given time. If it is not ``definite``, the peer may act on the request yet."""


class CloseConnectionError(Exception):
    """The request cannot be answered in the protocol: its connection is closed, as Kafka does for acks=0."""


class TooManyConnectionsError(Exception):
    """The client host is at its bound; the new connection is closed."""
