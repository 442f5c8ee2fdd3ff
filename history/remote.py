"""Files on any file system that pyarrow reads (``s3://``, ``gs://``, ``abfs://``, ``hdfs://``), named by a URI.

A ``RemotePath`` has the few methods of ``pathlib.Path`` that reading a history takes, so a reader need not ask where it
lies. It is pickled as its URI: a task opens the same file system on its own machine, once. How to reach a
store that is not the default one stands in the URI, as pyarrow takes it:
``s3://bucket/run?region=eu-west-1&endpoint_override=HOST:PORT``.

Who we are does not: a URI is stored and printed. Credentials are found where the store's own tools look for them
(environment, profile, metadata service), on each machine that reads.
"""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.fs

from nemesis.history.errors import (
    DamagedHistoryError,
    ForeignHistoryError,
    HistoryError,
    MissingHistoryError,
)

LOCAL_SCHEME: Final = "file"


def parse_location(text: str) -> Path | RemotePath:
    """Return what a path or a URI names; ``file://`` is a path. Raises ForeignHistoryError for no such file system."""
    if "://" not in text:
        return Path(text)
    parts = urlsplit(text)
    if parts.password is not None:
        raise ForeignHistoryError(
            f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path} was given with a password, which does not "
            "belong into a URI: put credentials where the store's own tools look for them, such as the environment"
        )
    remote = RemotePath(text)
    try:
        if parts.scheme == LOCAL_SCHEME:
            return Path(pa.fs.FileSystem.from_uri(text)[1])
        remote.exists()
    except (OSError, pa.ArrowException) as error:
        raise ForeignHistoryError(f"{remote} cannot be read: {brief(error)}") from None
    return remote


@dataclass(frozen=True, slots=True)
class RemotePath:
    """A file or directory; ``str`` gives its URI without the options."""

    uri: str

    @property
    def filesystem(self) -> Any:
        """Where it is, for pyarrow. Raises OSError, ArrowException."""
        return _root(self._of_root)[0]

    @property
    def path(self) -> str:
        """As the file system calls it."""
        return posixpath.join(_root(self._of_root)[1], unquote(urlsplit(self.uri).path).lstrip("/"))

    @property
    def name(self) -> str:
        return posixpath.basename(urlsplit(self.uri).path.rstrip("/"))

    @property
    def parent(self) -> RemotePath:
        return self._in_same_store(posixpath.dirname(urlsplit(self.uri).path.rstrip("/")))

    def __truediv__(self, name: str) -> RemotePath:
        return self._in_same_store(posixpath.join(urlsplit(self.uri).path, name))

    def __str__(self) -> str:
        return urlsplit(self.uri)._replace(query="", fragment="").geturl()

    def exists(self) -> bool:
        """Return whether the file or directory exists. Raises OSError when the store does not answer."""
        (information,) = self.filesystem.get_file_info([self.path])
        return bool(information.type != pa.fs.FileType.NotFound)

    def read_bytes(self) -> bytes:
        """The whole file. Raises OSError, FileNotFoundError among them."""
        with self.filesystem.open_input_file(self.path) as file:
            return bytes(file.read())

    def copy_to(self, directory: Path) -> None:
        """Make the directory, with a copy of all files below this one. Raises OSError."""
        directory.mkdir()
        pa.fs.copy_files(
            self.path,
            str(directory),
            source_filesystem=self.filesystem,
            destination_filesystem=pa.fs.LocalFileSystem(),
        )

    @property
    def _of_root(self) -> str:
        return self._in_same_store("/").uri

    def _in_same_store(self, path: str) -> RemotePath:
        return RemotePath(urlsplit(self.uri)._replace(path=path).geturl())


@lru_cache(maxsize=8)
def _root(uri: str) -> tuple[Any, str]:
    """The file system, and what it calls its root (of a bucket: the bucket). To open one may take a request."""
    filesystem, path = pa.fs.FileSystem.from_uri(uri)
    return filesystem, path


def unreadable(path: Path | RemotePath, error: Exception) -> HistoryError:
    """Return the error to raise for a file of a history that cannot be read."""
    if isinstance(path, RemotePath) and isinstance(error, OSError):
        return MissingHistoryError(f"{path} cannot be read: {brief(error)}")
    return DamagedHistoryError(f"{path} is damaged: {brief(error)}")


def brief(error: Exception) -> str:
    """The gist of what pyarrow says, which may be pages."""
    return " ".join(str(error).split())[:200]
