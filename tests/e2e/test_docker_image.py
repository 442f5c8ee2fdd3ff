"""The image of a node, built by a real engine: whole, small, and only when there is a reason to."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from docker import DockerClient
from docker.models.containers import Container
from docker.models.images import Image

from nemesis.running.clean import clean
from nemesis.runtimes.docker import base_image, engine, fragments, image, ingredients
from nemesis.runtimes.docker.ingredients import Ingredients
from nemesis.support.errors import MissingRequirement
from tests.e2e.command import wait_until
from tests.e2e.docker_machine import needs_docker

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1_200), needs_docker]

SIZE_LIMIT_BYTES = 500_000_000
CHANGED_LAYERS = 2
"""A change of the code copies and compiles it."""


@pytest.fixture(scope="module")
def client() -> Iterator[DockerClient]:
    connected = engine.connect()
    yield connected
    connected.close()


@pytest.fixture(scope="module")
def tag(client: DockerClient) -> str:
    return image.ensure_image(client, progress=print)


def with_code(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str) -> None:
    """Let the brokers' code have one module more."""
    module = tmp_path / "module.py"
    module.write_text(text)
    real = Ingredients.installed()
    changed = replace(real, code={**real.code, "code/reference/of_a_test.py": module})
    monkeypatch.setattr(Ingredients, "installed", classmethod(lambda cls: changed))


def layers(built: Image) -> list[str]:
    return list(built.attrs["RootFS"]["Layers"])


def ours(client: DockerClient) -> set[str]:
    """Every image of ours, the nameless layers of finished ones, too."""
    return {str(i.id) for i in client.images.list(all=True, filters={"label": fragments.LABEL})}


def test_an_image_that_is_there_is_not_built_again(client: DockerClient, tag: str) -> None:
    said: list[str] = []
    assert image.ensure_image(client, progress=said.append) == tag
    assert said == []


def test_the_image_is_small(client: DockerClient, tag: str) -> None:
    assert client.images.get(tag).attrs["Size"] < SIZE_LIMIT_BYTES


@pytest.mark.parametrize(
    "command",
    [
        [
            "python3",
            "-c",
            "import nemesis.reference.__main__, nemesis.runtimes.reference_launcher, kio, kazoo",
        ],
        ["java", "-cp", "/opt/zookeeper/*", "org.apache.zookeeper.version.VersionInfoMain"],
        ["bash", "-c", "compgen -G '/opt/nemesis/code/nemesis/reference/__pycache__/trace.*.pyc'"],
    ],
    ids=["brokers", "zookeeper", "compiled"],
)
def test_a_node_has_all_that_it_needs_without_a_network(
    client: DockerClient, tag: str, command: list[str]
) -> None:
    environment = {"NODE_CONFIGURATION": "", "PYTHONDONTWRITEBYTECODE": "1"}
    client.containers.run(tag, command, environment=environment, network_mode="none", remove=True)


def test_a_change_of_the_code_changes_only_the_last_layers(
    client: DockerClient, tag: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_code(monkeypatch, tmp_path, "CHANGED = True\n")
    changed = image.ensure_image(client, progress=print)
    try:
        assert changed != tag
        before, after = layers(client.images.get(tag)), layers(client.images.get(changed))
        assert len(after) == len(before)
        assert after[:-CHANGED_LAYERS] == before[:-CHANGED_LAYERS]
        assert after[-CHANGED_LAYERS:] != before[-CHANGED_LAYERS:]
    finally:
        client.images.remove(changed)


def test_a_build_that_fails_is_one_sentence_and_leaves_nothing(
    client: DockerClient, tag: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_code(monkeypatch, tmp_path, "def (\n")
    before, said = ours(client), list[str]()
    with pytest.raises(MissingRequirement) as caught:
        image.ensure_image(client, progress=said.append)
    assert said[0] == "building the image of the cluster's nodes"
    assert all(line.startswith("image of the nodes: step ") for line in said[1:])
    assert said[1].startswith("image of the nodes: step 1 of ")
    sentence = str(caught.value)
    assert sentence.startswith("the image of the cluster's nodes cannot be built: ")
    assert "SyntaxError" in sentence
    assert "\n" not in sentence
    assert ours(client) <= before


BUILDER = textwrap.dedent(
    """
    import sys
    from pathlib import Path
    from nemesis.runtimes.docker import engine, image, ingredients

    ingredients.DOCKERFILE = Path(sys.argv[1])
    image.ensure_image(engine.connect(), progress=print)
    """
)


def unfinished(client: DockerClient) -> list[Container]:
    marks = [f"{name}={value}" for name, value in fragments.UNFINISHED.items()]
    return client.containers.list(all=True, ignore_removed=True, filters={"label": marks})


def test_clean_removes_what_a_killed_build_has_left_and_no_finished_ones_container(
    client: DockerClient, tag: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEMESIS_RUNTIME_DIR", str(tmp_path / "runtime"))
    dockerfile = tmp_path / "Dockerfile"
    text = ingredients.DOCKERFILE.read_text()
    dockerfile.write_text(text.replace("COPY node", "RUN sleep 600\nCOPY node"))
    before = ours(client)
    persons = client.containers.create(tag)

    def is_at_its_long_step() -> bool:
        return any(
            "sleep 600" in str(container.attrs["Config"]["Cmd"]) for container in unfinished(client)
        )

    builder = subprocess.Popen([sys.executable, "-c", BUILDER, dockerfile])
    try:
        wait_until(is_at_its_long_step, "the long step of the build")
        assert clean().engine == (), "a living build is left alone"
        assert is_at_its_long_step()
        builder.kill()
        builder.wait()
        # The engine may have been faster with its own; this one it would not have removed.
        forgotten = client.containers.create(tag, labels=fragments.UNFINISHED)

        report = clean()

        assert report.is_clean
        assert f"unfinished image's container {forgotten.name}" in report.engine
        wait_until(lambda: unfinished(client) == [], "the end of what is unfinished")
        clean()  # an image that the engine still built on is nobody's now
        assert ours(client) == before
        persons.reload()
    finally:
        builder.kill()
        builder.wait()
        persons.remove()


def test_old_images_go_but_for_the_newest_and_those_in_use(
    client: DockerClient, tag: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(image, "REPOSITORY", "nemesis-old-images")
    monkeypatch.setattr(image, "KEPT", 2)
    tags = [f"nemesis-old-images:{number}" for number in range(4)]
    used = None
    try:
        for number, name in enumerate(tags):
            (tmp_path / "Dockerfile").write_text(f'FROM {tag}\nENV NUMBER="{number}"\n')
            client.images.build(path=str(tmp_path), tag=name, nocache=True, rm=True)
        used = client.containers.create(tags[0])
        image.remove_old_images(client)
        left = client.images.list(name="nemesis-old-images")
        assert {name for i in left for name in i.tags} == {tags[0], tags[2], tags[3]}
    finally:
        if used is not None:
            used.remove()
        for name in tags:
            if base_image.has_image(client, name):
                client.images.remove(name)


def test_without_a_registry_and_without_packages_there_is_one_sentence(
    client: DockerClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "base-image.sh"
    script.write_text("#!/bin/sh\necho working >&2\necho no space left >&2\nexit 3\n")
    script.chmod(0o755)
    monkeypatch.setattr(base_image, "SCRIPT", script)
    monkeypatch.setattr(base_image, "default_base", lambda: "registry.invalid/nothing:1")
    with pytest.raises(MissingRequirement) as caught:
        base_image.ensure_base(client, progress=print)
    sentence = str(caught.value)
    assert "registry.invalid/nothing:1 cannot be fetched (" in sentence
    assert "none can be made of the distribution's packages (no space left)" in sentence


@pytest.mark.nightly
def test_a_base_is_made_of_the_distributions_packages_and_nothing_stays(
    client: DockerClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    made = "nemesis-base:of-a-test"
    monkeypatch.setattr(base_image, "default_base", lambda: "registry.invalid/nothing:1")
    monkeypatch.setattr(base_image, "own_base", lambda: made)
    said: list[str] = []
    try:
        assert base_image.ensure_base(client, progress=said.append) == made
        assert len(said) == 2
        assert list(tmp_path.iterdir()) == []
        major, minor = base_image.python_version(client, made).split(".")
        assert (int(major), int(minor)) >= (3, 11)
        client.containers.run(made, ["java", "-version"], network_mode="none", remove=True)
        assert client.images.get(made).attrs["Size"] < SIZE_LIMIT_BYTES
    finally:
        if base_image.has_image(client, made):
            client.images.remove(made)
