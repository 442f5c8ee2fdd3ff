"""A server of S3's protocol in a process of its own: what our side asks of it goes over the wire."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow.fs

STARTED_WITHIN_S = 60.0
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "someone", "AWS_SECRET_ACCESS_KEY": "a secret"}


@contextmanager
def s3_server() -> Iterator[str]:
    """Yield ``HOST:PORT`` of a server that holds nothing."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + STARTED_WITHIN_S
        while not _answers(port):
            assert server.poll() is None, "the server ended by itself"
            assert time.monotonic() < deadline, "the server did not start"
            time.sleep(0.05)
        yield f"127.0.0.1:{port}"
    finally:
        server.kill()
        server.wait()


def filesystem(location: str) -> pyarrow.fs.S3FileSystem:
    """As an uploader has it, who may make buckets."""
    return pyarrow.fs.S3FileSystem(
        access_key=os.environ["AWS_ACCESS_KEY_ID"],
        secret_key=os.environ["AWS_SECRET_ACCESS_KEY"],
        endpoint_override=location,
        scheme="http",
        region="us-east-1",
        allow_bucket_creation=True,
    )


def _answers(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
    except OSError:
        return False
