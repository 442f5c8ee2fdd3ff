"""What this machine lacks for containers is one sentence and exit code 254, and nothing is left behind.

The engines are real: this machine's, and a second one of the test's own whose disk is small.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import textwrap
import uuid
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import docker
import pytest
from docker import DockerClient
from docker.models.images import Image
from docker.types import IPAMConfig, IPAMPool

from nemesis.cli.app import call
from nemesis.runtimes.docker import addresses, base_image, cluster, image
from nemesis.runtimes.docker.engine import DEFAULT_ADDRESS
from nemesis.runtimes.docker.ingredients import Ingredients
from nemesis.support.errors import EXIT_USAGE, MissingRequirement
from nemesis.support.journal import read_journals
from tests.e2e.command import SCENARIO, wait_until
from tests.e2e.docker_machine import build_image, engine, needs_docker, things

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300, func_only=True), needs_docker]

RUN = ["run", SCENARIO, "--runtime", "docker", "--seed", "1"]
NOBODY = 65534
OWN_ENGINE = os.environ.get("DOCKER_HOST", DEFAULT_ADDRESS)


@pytest.fixture(autouse=True)
def _surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = tmp_path / "work"
    directory.mkdir()
    monkeypatch.chdir(directory)
    monkeypatch.setenv("NEMESIS_RUNTIME_DIR", str(tmp_path / "runtime"))


@pytest.fixture(scope="module")
def _image() -> None:
    build_image()


def sentence_of(code: int, out: str, err: str) -> str:
    """Return the one sentence with which nemesis refused; notes of what it was about to do may stand before it."""
    *notes, last = err.splitlines()
    assert code == EXIT_USAGE, err
    assert out == ""
    assert last.startswith("nemesis: ")
    assert not any("Traceback" in line for line in notes)
    assert list(Path.cwd().iterdir()) == []
    return last


def refused(capsys: pytest.CaptureFixture[str]) -> str:
    """Order a run; return the sentence that refuses it. Nothing of it is at the engine."""
    before = set(things())
    code = call(RUN)
    captured = capsys.readouterr()
    assert set(things()) <= before
    assert read_journals() == []
    return sentence_of(code, captured.out, captured.err)


def test_no_engine(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nobody.sock")
    code = call(RUN)
    captured = capsys.readouterr()
    assert "no Docker engine runs" in sentence_of(code, captured.out, captured.err)


WITHOUT_RIGHTS = textwrap.dedent(
    f"""
    import os, sys
    from nemesis.cli.app import call
    from nemesis.cli.commands import run
    from nemesis.runtimes.docker import machine, runtime
    os.seteuid({NOBODY})
    sys.exit(call({RUN}))
    """
)


def test_no_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for directory in (tmp_path, *tmp_path.parents[:2]):
        directory.chmod(0o755)
    own = tmp_path / "runtime"
    own.mkdir()
    os.chown(own, NOBODY, NOBODY)
    os.chown(Path.cwd(), NOBODY, NOBODY)
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_RIGHTS], capture_output=True, text=True, check=False
    )
    sentence = sentence_of(done.returncode, done.stdout, done.stderr)
    assert sentence.startswith("nemesis: you may not use the Docker engine at ")
    assert sentence.endswith("run nemesis with sudo")


@pytest.mark.usefixtures("_image")
def test_an_image_that_does_not_build(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module = tmp_path / "module.py"
    module.write_text("def (\n")
    real = Ingredients.installed()
    broken = replace(real, code={**real.code, "code/reference/of_a_test.py": module})
    monkeypatch.setattr(Ingredients, "installed", classmethod(lambda cls: broken))
    sentence = refused(capsys)
    assert "the image of the cluster's nodes cannot be built: " in sentence
    assert "SyntaxError" in sentence


@pytest.mark.usefixtures("_image")
def test_no_subnet(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    subnet = next(addresses.candidates())
    monkeypatch.setattr(cluster, "candidates", lambda: iter([subnet]))
    pool = IPAMConfig(pool_configs=[IPAMPool(subnet=str(subnet))])
    with engine() as client:
        taken = client.networks.create(f"nemesis-test-{uuid.uuid4().hex[:8]}", ipam=pool)
        try:
            assert "every subnet of 198.18.0.0/15 is taken" in refused(capsys)
        finally:
            taken.remove()


@pytest.mark.usefixtures("_image")
def test_an_engine_that_refuses_in_the_middle(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By then the run has a directory, a network and volumes."""
    monkeypatch.setattr(cluster, "ensure_image", lambda *_, **__: "nemesis:absent")
    sentence = refused(capsys)
    assert "the Docker engine cannot make the container of " in sentence
    assert "nemesis:absent" in sentence


@pytest.fixture
def small_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A second engine, whose files are in a file system of less than a GiB, which is what is yielded.

    In a network namespace of its own: an engine without a bridge removes the one that it finds, the first engine's.
    """
    disk, state = tmp_path / "disk", Path("/run") / f"nemesis-test-{uuid.uuid4().hex[:8]}"
    disk.mkdir()
    socket_path = state / "docker.sock"
    arguments = [f"--data-root={disk}", f"--exec-root={state}", f"--pidfile={state}/pid"]
    arguments += [
        f"--host=unix://{socket_path}",
        "--bridge=none",
        "--iptables=false",
        "--ip-masq=false",
    ]
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=960m", "tmpfs", disk], check=True)
    with (tmp_path / "dockerd.log").open("wb") as log:
        daemon = subprocess.Popen(
            ["unshare", "--net", "dockerd", *arguments], stdout=log, stderr=log
        )
    try:
        wait_until(lambda: answers(socket_path), "an answer of the second engine")
        monkeypatch.setenv("DOCKER_HOST", f"unix://{socket_path}")
        yield disk
    finally:
        daemon.terminate()
        daemon.wait(60)
        subprocess.run(["umount", disk], check=True)
        shutil.rmtree(state, ignore_errors=True)


def answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(str(path)) == 0


def test_no_space_at_the_engine_is_seen_before_anything_is_begun(
    small_engine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sentence = refused(capsys)
    assert "the Docker engine has " in sentence
    assert f" MiB left in {small_engine}: free 1,024 MiB" in sentence


@pytest.mark.usefixtures("_image")
def test_no_space_for_the_image_leaves_nothing_of_it(
    small_engine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(docker.from_env()) as client:
        base = copied_base(to=client)
        leave_free(small_engine, 8 * 2**20)
        with pytest.raises(MissingRequirement) as caught:
            image.ensure_image(client, progress=print)
        sentence = str(caught.value)
        assert sentence.startswith("the image of the cluster's nodes cannot be built: ")
        assert "no space left on device" in sentence.lower()
        assert "\n" not in sentence
        assert [i.id for i in client.images.list(all=True)] == [base.id]
        assert client.containers.list(all=True) == []


def copied_base(*, to: DockerClient) -> Image:
    """Give the second engine what this machine's builds images on."""
    with closing(DockerClient(base_url=OWN_ENGINE)) as own:
        bases = (base_image.default_base(), base_image.own_base())
        base = next(base for base in bases if base_image.has_image(own, base))
        (copy,) = to.images.load(own.images.get(base).save(named=True))  # type: ignore[arg-type]  # it streams
    return copy


def leave_free(directory: Path, size: int) -> None:
    """Fill a file system up to this."""
    free = shutil.disk_usage(directory).free
    with (directory / "filling").open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, free - size)
