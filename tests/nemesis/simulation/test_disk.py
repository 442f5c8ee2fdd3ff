"""What a power cut leaves, what a full and a failing disk refuse, and what a dead life can no longer do."""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nemesis.simulation.disk import Operation, PowerLoss, SimulatedDisk

SEEDS = range(300)


@dataclass
class Incarnation:
    is_dead: bool = False
    actions: int = 0

    def act(self) -> None:
        self.actions += 1


def after_cuts(build: Callable[[SimulatedDisk], None]) -> list[dict[str, bytes]]:
    """What is left of the same disk after many power cuts, each with another seed."""
    left = []
    for seed in SEEDS:
        disk = SimulatedDisk()
        disk.make_directory("d")
        disk.append("d/synced", b"s")
        disk.fsync("d/synced")
        build(disk)
        disk.power_cut(Random(seed))
        contents = disk.contents()
        assert contents.pop("/d/synced") == b"s"
        left.append(contents)
    return left


def test_of_unsynced_appends_a_prefix_is_left_and_it_may_be_torn_or_end_in_zeros() -> None:
    def build(disk: SimulatedDisk) -> None:
        disk.append("d/f", b"one")
        disk.fsync("d/f")
        disk.append("d/f", b"two")
        disk.append("d/f", b"three")

    collected = {contents["/d/f"] for contents in after_cuts(build)}
    written = {data.rstrip(b"\0") for data in collected}
    assert written == {b"onetwothree"[:size] for size in range(3, 12)}
    zeros = {len(data) for data in collected if data.endswith(b"\0")}
    assert zeros == {len("onetwo"), len("onetwothree")}  # lengths that the file has had


def test_an_unsynced_truncation_may_be_undone_and_a_synced_one_never() -> None:
    def build(disk: SimulatedDisk) -> None:
        for name in ("d/f", "d/g"):
            disk.append(name, b"0123456789")
            disk.fsync(name)
        disk.truncate("d/g", 4)
        disk.fsync("d/g")
        disk.truncate("d/f", 4)

    left = after_cuts(build)
    assert {contents["/d/f"] for contents in left} == {b"0123456789", b"0123"}
    assert {contents["/d/g"] for contents in left} == {b"0123"}


def test_truncations_and_names_reach_the_medium_in_order() -> None:
    def build(disk: SimulatedDisk) -> None:
        for name in ("d/f", "d/g"):
            disk.append(name, b"0123456789")
            disk.fsync(name)
        disk.remove("d/g")
        disk.truncate("d/f", 4)

    collected = {(contents["/d/f"], "/d/g" in contents) for contents in after_cuts(build)}
    assert collected == {(b"0123456789", True), (b"0123456789", False), (b"0123", False)}


def test_a_name_that_was_never_synced_may_vanish_and_a_removed_one_may_come_back() -> None:
    def build(disk: SimulatedDisk) -> None:
        disk.append("d/old", b"x")
        disk.fsync("d/old")
        disk.remove("d/old")
        disk.append("d/new", b"")

    assert {tuple(sorted(contents)) for contents in after_cuts(build)} == {
        ("/d/old",),
        (),
        ("/d/new",),
    }


def test_syncing_a_file_keeps_its_name_and_the_directories_above() -> None:
    def build(disk: SimulatedDisk) -> None:
        disk.make_directory("d/e/g")
        disk.append("d/e/g/f", b"data")
        disk.fsync("d/e/g/f")

    assert after_cuts(build) == [{"/d/e/g/f": b"data"}] * len(SEEDS)


def test_a_replaced_file_is_there_whole() -> None:
    def build(disk: SimulatedDisk) -> None:
        disk.replace("d/f", b"old")
        disk.replace("d/f", b"newer")

    assert after_cuts(build) == [{"/d/f": b"newer"}] * len(SEEDS)


def test_a_removed_directory_may_come_back_in_part() -> None:
    def build(disk: SimulatedDisk) -> None:
        disk.make_directory("d/t")
        for name in ("d/t/1", "d/t/2"):
            disk.append(name, b"x")
            disk.fsync(name)
        disk.remove("d/t")

    collected = {tuple(sorted(contents)) for contents in after_cuts(build)}
    assert collected == {("/d/t/1", "/d/t/2"), ("/d/t/2",), ()}


def test_a_power_cut_is_a_function_of_the_disk_and_the_seed_and_says_what_it_took() -> None:
    def cut(seed: int) -> tuple[PowerLoss, dict[str, bytes]]:
        disk = SimulatedDisk()
        for number in range(5):
            disk.append(f"{number}", b"synced")
            disk.fsync(f"{number}")
            disk.append(f"{number}", b"unsynced")
        loss = disk.power_cut(Random(seed))
        return loss, disk.contents()

    assert [cut(seed) for seed in SEEDS] == [cut(seed) for seed in SEEDS]
    for seed in SEEDS:
        loss, left = cut(seed)
        survived = sum(len(data.rstrip(b"\0")) for data in left.values())
        assert loss.unsynced_bytes == 5 * len("unsynced")
        assert loss.lost_bytes == 5 * len("syncedunsynced") - survived
        changed = [path for path, data in left.items() if data != b"syncedunsynced"]
        assert set(loss.torn_files) <= set(changed)
        assert len(changed) == len(loss.torn_files) + loss.lost_writes


def test_what_was_left_by_one_power_cut_is_left_by_the_next() -> None:
    disk = SimulatedDisk()
    for number in range(20):
        disk.append("f", bytes([number]))
    disk.power_cut(Random(1))
    left = disk.contents()
    assert disk.power_cut(Random(2)) == PowerLoss(0, 0, 0, 0, ())
    assert disk.contents() == left


@given(data=st.data())
@settings(max_examples=60)
def test_whatever_happened_what_was_synced_last_is_there(data: st.DataObject) -> None:
    """Files that only grow, as segments do between truncations."""
    disk, synced = SimulatedDisk(), dict[str, bytes]()
    names = st.sampled_from(["a", "d/a", "d/b"])
    disk.make_directory("d")
    for _ in range(data.draw(st.integers(1, 40))):
        name = data.draw(names)
        match data.draw(st.sampled_from(["append", "append", "fsync", "replace", "cut"])):
            case "append":
                if disk.exists("d") or not name.startswith("d"):
                    disk.append(name, data.draw(st.binary(max_size=9)))
            case "fsync" if disk.exists(name):
                disk.fsync(name)
                synced[f"/{name}"] = disk.contents()[f"/{name}"]
            case "replace" if disk.exists("d"):
                disk.replace("d/r", b"r%d" % len(synced))
                synced["/d/r"] = disk.contents()["/d/r"]
            case "cut":
                disk.power_cut(data.draw(st.randoms(use_true_random=False)))
        left = disk.contents()
        assert all(left[path].startswith(kept) for path, kept in synced.items())


def test_a_full_disk_takes_what_fits_and_takes_more_when_there_is_room_again() -> None:
    disk = SimulatedDisk()
    disk.append("f", b"0123456789")
    disk.append("g", b"x")
    disk.fill(free_bytes=3)
    assert disk.probe() == {"read": None, "write": None, "fsync": None}
    with pytest.raises(OSError, match="f") as full:
        disk.append("f", b"abcdef")
    assert full.value.errno == errno.ENOSPC
    assert disk.contents()["/f"] == b"0123456789abc"
    assert disk.probe() == {"read": None, "write": "ENOSPC", "fsync": None}
    disk.fsync("f")
    disk.append("new", b"")
    disk.truncate("f", 9)
    disk.append("g", b"yyyy")
    with pytest.raises(OSError, match=r"r\.tmp"):
        disk.replace("r", b"r")
    assert not disk.exists("r")
    assert disk.heal() == {"ENOSPC": 2}
    disk.append("g", b"z" * 99)
    assert disk.refused == {}


@pytest.mark.parametrize(
    ("operation", "call"),
    [
        (Operation.READ, lambda disk: disk.read("d/f", 0, 1)),
        (Operation.READ, lambda disk: disk.list("d")),
        (Operation.READ, lambda disk: disk.size("d/f")),
        (Operation.WRITE, lambda disk: disk.append("d/f", b"y")),
        (Operation.WRITE, lambda disk: disk.truncate("d/f", 0)),
        (Operation.WRITE, lambda disk: disk.make_directory("d/e")),
        (Operation.WRITE, lambda disk: disk.remove("d/f")),
        (Operation.FSYNC, lambda disk: disk.fsync("d/f")),
        (Operation.FSYNC, lambda disk: disk.replace("d/r", b"y")),
    ],
)
def test_a_failing_disk_fails_at_what_it_is_told_below_where_it_is_told(
    operation: Operation, call: Callable[[SimulatedDisk], Any]
) -> None:
    disk = SimulatedDisk()
    for directory in ("d", "d2"):
        disk.make_directory(directory)
        disk.append(f"{directory}/f", b"x")
    before = disk.contents()
    disk.fail(below="d/", operations=frozenset({operation}))
    assert disk.probe("d/f") == {o: "EIO" if o is operation else None for o in Operation}
    with pytest.raises(OSError, match="d") as failed:
        call(disk)
    assert failed.value.errno == errno.EIO
    assert {p: d for p, d in disk.contents().items() if not p.endswith(".tmp")} == before
    disk.append("d2/f", b"y")
    disk.fsync("d2/f")
    assert disk.read("d2/f", 0, 9) == b"xy"
    assert disk.heal() == {"EIO": 1}
    call(disk)


def test_a_dead_life_reaches_the_disk_no_more_and_the_next_one_finds_what_was_written() -> None:
    disk, incarnation = SimulatedDisk(), Incarnation()
    view = disk.fenced(incarnation)
    view.append("f", b"written")
    incarnation.is_dead = True
    view.append("f", b"late")
    view.replace("f", b"late")
    view.truncate("f", 0)
    view.remove("f")
    view.rename("f", "g")
    view.make_directory("d")
    view.fsync("f")
    view.close("f")
    assert (view.read("f", 0, 9), view.size("f"), view.exists("f"), view.list("")) == (
        b"",
        0,
        False,
        [],
    )
    assert disk.contents() == {"/f": b"written"}
    assert disk.fenced(Incarnation()).read("f", 0, 9) == b"written"
