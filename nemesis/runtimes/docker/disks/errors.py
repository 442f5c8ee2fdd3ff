"""``DiskError``: what the machine refused when a disk was made, broken or mended, in one sentence."""

from __future__ import annotations


class DiskError(Exception):
    """A disk could not be made, reached or brought back. A failure of the harness, never of the cluster."""
