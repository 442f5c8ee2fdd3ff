"""What can be wrong with bytes from the network.

ProtocolError                 the frame breaks the protocol: close the connection it came on, nothing else
└── UnsupportedVersionError   well formed, but of an API or version that this broker does not offer
"""

from __future__ import annotations


class ProtocolError(ValueError):
    """Bytes that no correct peer sends. Raised by the codec; the connection's owner closes the connection."""


class UnsupportedVersionError(ProtocolError):
    """An API key or version outside the offered range.

    Kafka answers it for ApiVersions (so that a newer client can lower its version) and closes otherwise.
    """

    def __init__(self, api_key: int, api_version: int, correlation_id: int) -> None:
        super().__init__(f"API {api_key} version {api_version} is not offered")
        self.api_key = api_key
        self.api_version = api_version
        self.correlation_id = correlation_id
