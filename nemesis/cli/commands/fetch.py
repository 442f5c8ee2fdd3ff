"""``nemesis fetch``: get the software of a target that does not come with nemesis."""

from __future__ import annotations

from typing import Annotated

import typer

from nemesis.cli.console import note, out, say_json
from nemesis.cli.options import Json
from nemesis.support.choices import one_of
from nemesis.targets.kafka.installation import fetch

KAFKA = "kafka"


def fetch_target(
    target: Annotated[str, typer.Argument(metavar="TARGET", help=f"What to fetch: {KAFKA}.")],
    version: Annotated[str, typer.Argument(metavar="VERSION", help="Such as 3.9.1.")],
    as_json: Json = False,
) -> None:
    """Download a release of Apache Kafka with Maven into the cache, and verify its checksums."""
    one_of("target to fetch", target, [KAFKA])
    installation = fetch(version, note)
    count = sum(1 for _ in installation.jars.glob("*.jar"))
    if as_json:
        say_json(
            {"target": target, "version": version, "jars": count, "path": str(installation.jars)}
        )
    else:
        out.print(f"Kafka {version}: {count} jars in {installation.jars}, checksums verified")
