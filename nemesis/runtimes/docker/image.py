"""The image of a cluster's nodes, built when what goes into it has changed and at no other time.

Its tag is a digest of its ingredients and its base, so looking for the tag answers whether there is anything to do. The
Dockerfile has what changes seldom first: a change of the brokers' code builds one layer, in seconds. Older images are
removed, all but a few, so that neither two checkouts nor two runs get in each other's way.

What a build that fails has made is removed again. The engine's cache of layers is not ours.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from docker import DockerClient
from docker.errors import APIError, BuildError, DockerException
from requests.exceptions import RequestException

from nemesis.runtimes.docker.base_image import (
    default_base,
    ensure_base,
    has_image,
    own_base,
    python_version,
)
from nemesis.runtimes.docker.fragments import LABEL, building, remove_fragments
from nemesis.runtimes.docker.ingredients import Ingredients
from nemesis.runtimes.docker.packages import last_line, unpacked
from nemesis.support.errors import MissingRequirement

_STEP: Final = re.compile(r"Step (\d+)/(\d+) : (\S.{0,60})")
REPOSITORY: Final = "nemesis"
KEPT: Final = 4
"""So many images stay when another one was built."""

BUILD_TIMEOUT_S: Final = 900

BUILDERS_OWN: Final = ("Step ", " ---> ", "Removing intermediate container")
"""How lines begin that the engine adds to what the steps of a build say."""


def ensure_image(client: DockerClient, *, progress: Callable[[str], None]) -> str:
    """Return the tag of the image, built when it is not there yet; blocks, for minutes the very first time.

    ``progress`` is told what is going on. Raises ``MissingRequirement`` in one sentence; nothing half-made is left.
    """
    ingredients = Ingredients.installed()
    tags = [tag_of(ingredients, base) for base in (default_base(), own_base())]
    try:
        for tag in tags:
            if has_image(client, tag):
                return tag
        with building():
            base = ensure_base(client, progress=progress)
            tag = tag_of(ingredients, base)
            if not has_image(client, tag):  # another run may have built it meanwhile
                progress("building the image of the cluster's nodes")
                _build(client, ingredients, base, tag, progress)
                remove_old_images(client)
            return tag
    except (DockerException, RequestException, OSError) as error:
        raise MissingRequirement(
            f"the image of the cluster's nodes cannot be built: {reason(error)}"
        ) from error


def follow(parts: Iterable[dict[str, Any]], progress: Callable[[str], None]) -> None:
    """Report each step of a build, from what the engine sends; raises ``BuildError`` when a step fails."""
    log: list[dict[str, Any]] = []
    for part in parts:
        log.append(part)
        if "error" in part:
            raise BuildError(part["error"], iter(log))
        step = _STEP.match(str(part.get("stream", "")))
        if step is not None:
            progress(f"image of the nodes: step {step[1]} of {step[2]}: {step[3]}")


def tag_of(ingredients: Ingredients, base: str) -> str:
    """Return what the image of these ingredients on that base is called."""
    return f"{REPOSITORY}:{ingredients.digest(base)}"


def remove_old_images(client: DockerClient) -> None:
    """Remove all of our images but the newest few and those that a container uses; raises the SDK's errors."""
    ours = client.images.list(name=REPOSITORY, filters={"label": LABEL})
    ours.sort(key=lambda image: str(image.attrs["Created"]), reverse=True)
    for image in ours[KEPT:]:
        for tag in image.tags:
            with suppress(APIError):  # in use
                client.images.remove(tag)


def reason(error: Exception) -> str:
    """Return in one line what the engine says, and of a build what its failed step said last."""
    if isinstance(error, BuildError):
        said = "".join(str(part.get("stream", "")) for part in error.build_log).splitlines()
        of_the_step = "\n".join(line for line in said if not line.startswith(BUILDERS_OWN))
        return f"{' '.join(str(error.msg).split())} ({last_line(of_the_step)})"
    if isinstance(error, APIError) and error.explanation:
        return " ".join(str(error.explanation).split())
    return " ".join(str(error).split()) or type(error).__name__


def _build(
    client: DockerClient,
    ingredients: Ingredients,
    base: str,
    tag: str,
    progress: Callable[[str], None],
) -> None:
    """Build it; raises the SDK's errors, OSError or ``MissingRequirement``."""
    packages = unpacked(ingredients.packages, python_version(client, base))
    with tempfile.TemporaryDirectory(prefix="nemesis-image-") as folder:
        ingredients.lay_out(Path(folder), packages)
        try:
            # Not ``client.images.build``, which is silent for minutes.
            parts = client.api.build(
                path=folder,
                tag=tag,
                buildargs={"BASE": base},
                rm=True,
                forcerm=True,
                timeout=BUILD_TIMEOUT_S,
                decode=True,
            )
            follow(parts, progress)
        except BaseException:
            with suppress(DockerException, RequestException):
                remove_fragments(client)
            raise
