"""A disk in another process's hand: it fails as told, says what it refused, and knows what is not synced."""

from __future__ import annotations

import errno
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemesis.runtimes.disk_control import unsynced
from nemesis.runtimes.disk_control.commands import HEALTHY, DiskCommand, DiskCommands
from nemesis.runtimes.disk_control.faulty_disk import BLOCK_BYTES, FaultyDisk


@pytest.fixture
def commands(tmp_path: Path) -> DiskCommands:
    return DiskCommands.create(tmp_path / "commands")


@pytest.fixture
def disk(tmp_path: Path, commands: DiskCommands) -> FaultyDisk:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    return FaultyDisk(tmp_path / "commands")


def meets(error: int) -> pytest.RaisesExc[OSError]:
    return pytest.raises(OSError, check=lambda raised: raised.errno == error)


def test_an_order_holds_from_the_next_call_to_the_next_order(
    disk: FaultyDisk, commands: DiskCommands, tmp_path: Path
) -> None:
    file = str(tmp_path / "a" / "f")
    disk.append(file, b"before")
    commands.give(DiskCommand(error=errno.EIO))
    for call in (
        lambda: disk.append(file, b"during"),
        lambda: disk.read(file, 0, 6),
        lambda: disk.fsync(file),
        lambda: disk.replace(file, b"during"),
        lambda: disk.truncate(file, 0),
        lambda: disk.list(str(tmp_path / "a")),
        lambda: disk.remove(file),
        lambda: disk.rename(file, f"{file}2"),
        lambda: disk.make_directory(str(tmp_path / "a" / "d")),
    ):
        with meets(errno.EIO):
            call()
    assert commands.counted() == {"EIO": 9}
    commands.give(HEALTHY)
    disk.append(file, b" after")
    assert disk.read(file, 0, 99) == b"before after"


def test_one_directory_fails_and_its_neighbour_works(
    disk: FaultyDisk, commands: DiskCommands, tmp_path: Path
) -> None:
    commands.give(DiskCommand(error=errno.EIO, below=(str(tmp_path / "a"),)))
    with meets(errno.EIO):
        disk.append(str(tmp_path / "a" / "f"), b"data")
    (tmp_path / "aa").mkdir()
    for neighbour in ("b", "aa"):
        disk.append(str(tmp_path / neighbour / "f"), b"data")


def test_a_full_disk_takes_what_its_last_block_has_room_for(
    disk: FaultyDisk, commands: DiskCommands, tmp_path: Path
) -> None:
    file = str(tmp_path / "a" / "f")
    disk.append(file, bytes(BLOCK_BYTES - 10))
    commands.give(DiskCommand(error=errno.ENOSPC))
    disk.append(file, bytes(4))
    with meets(errno.ENOSPC):
        disk.append(file, bytes(7))
    assert disk.size(file) == BLOCK_BYTES
    with meets(errno.ENOSPC):
        disk.append(str(tmp_path / "a" / "new"), b"x")
    with meets(errno.ENOSPC):
        disk.replace(file, b"x")
    assert disk.read(file, 0, 4) == bytes(4)
    assert set(disk.replace_all({file: b"x"})) == {file}
    assert commands.counted() == {"ENOSPC": 4}


def test_the_next_life_finds_the_disk_as_it_was(
    disk: FaultyDisk, commands: DiskCommands, tmp_path: Path
) -> None:
    disk.append(str(tmp_path / "a" / "f"), b"data")
    commands.give(DiskCommand(error=errno.EIO))
    with meets(errno.EIO):
        FaultyDisk(tmp_path / "commands").size(str(tmp_path / "a" / "f"))


def test_a_power_cut_takes_only_what_was_not_synced(disk: FaultyDisk, tmp_path: Path) -> None:
    safe, risky, new = (tmp_path / "a" / name for name in ("safe", "risky", "new"))
    disk.append(str(safe), b"synced")
    disk.fsync(str(safe))
    disk.append(str(risky), b"synced")
    disk.fsync(str(risky))
    disk.append(str(risky), b"unsynced" * 100)
    disk.append(str(new), b"unsynced" * 100)
    disk.replace(str(tmp_path / "a" / "replaced"), b"replaced")
    loss = unsynced.lose(tmp_path / "commands", Random(0))
    assert loss.unsynced_bytes == 1600
    assert 0 < loss.lost_bytes <= 1600
    assert safe.read_bytes() == b"synced"
    assert (tmp_path / "a" / "replaced").read_bytes() == b"replaced"
    assert risky.read_bytes().startswith(b"synced")
    assert unsynced.lose(tmp_path / "commands", Random(0)).unsynced_bytes == 0


def test_what_a_dead_process_wrote_is_still_at_risk(disk: FaultyDisk, tmp_path: Path) -> None:
    file = tmp_path / "a" / "f"
    disk.append(str(file), b"one")
    FaultyDisk(tmp_path / "commands").append(str(file), b"two")
    assert dict(unsynced.read(tmp_path / "commands")) == {str(file): 0}


steps = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.sampled_from("fg"), st.integers(0, 50)),
        st.tuples(st.just("truncate"), st.sampled_from("fg"), st.integers(0, 80)),
        st.tuples(st.just("fsync"), st.sampled_from("fg"), st.just(0)),
        st.tuples(st.just("replace"), st.sampled_from("fg"), st.integers(0, 50)),
        st.tuples(st.just("rename"), st.sampled_from("fg"), st.just(0)),
        st.tuples(st.just("remove"), st.sampled_from("fg"), st.just(0)),
        st.tuples(st.just("restart"), st.just("f"), st.just(0)),
    ),
    max_size=30,
)


@given(steps, st.integers(0, 2**32))
def test_synced_bytes_outlive_every_power_cut(
    tmp_path_factory: pytest.TempPathFactory, history: list[tuple[str, str, int]], seed: int
) -> None:
    root = tmp_path_factory.mktemp("disk")
    DiskCommands.create(root / "commands")
    disk = FaultyDisk(root / "commands")
    written: dict[str, bytes] = {}
    synced: dict[str, bytes] = {}
    for number, (label, name, size) in enumerate(history):
        path, data = str(root / name), bytes([number + 1]) * size
        if label == "restart":
            disk = FaultyDisk(root / "commands")
        elif label == "append":
            disk.append(path, data)
            written[name] = written.get(name, b"") + data
        elif label == "replace":
            disk.replace(path, data)
            written[name] = synced[name] = data
        elif label == "remove":
            disk.remove(path)
            written.pop(name, None)
            synced.pop(name, None)
        elif name in written:
            if label == "fsync":
                disk.fsync(path)
                synced[name] = written[name]
            elif label == "truncate":
                disk.truncate(path, size)
                written[name] = written[name][:size].ljust(size, b"\0")
                synced[name] = synced.get(name, b"")[:size]
            else:
                other = "f" if name == "g" else "g"
                disk.rename(path, str(root / other))
                written[other] = written.pop(name)
                synced[other] = synced.pop(name, b"")
    unsynced.lose(root / "commands", Random(seed))
    for name, data in written.items():
        result = (root / name).read_bytes()
        assert result.startswith(synced.get(name, b""))
        kept = len(result.rstrip(b"\0"))
        assert result[:kept] == data[:kept]
