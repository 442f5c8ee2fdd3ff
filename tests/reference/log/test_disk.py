from __future__ import annotations

import gc
from pathlib import Path

import pytest

from nemesis.reference.adapters.disk import RealDisk


def open_files() -> int:
    gc.collect()  # what other tests have dropped
    return len(list(Path("/proc/self/fd").iterdir()))


def test_appends_reads_and_truncates(tmp_path: Path) -> None:
    disk, path = RealDisk(), str(tmp_path / "f")
    disk.append(path, b"hello ")
    disk.append(path, b"world")
    assert (disk.size(path), disk.read(path, 3, 5), disk.read(path, 9, 99)) == (11, b"lo wo", b"ld")
    assert disk.read(path, 11, 5) == b""
    disk.truncate(path, 5)
    disk.append(path, b"!")
    assert Path(path).read_bytes() == b"hello!"
    disk.fsync(path)


def test_many_files_need_few_handles(tmp_path: Path) -> None:
    disk = RealDisk(max_handles=10)
    before = open_files()
    for _ in range(2):
        for i in range(300):
            disk.append(str(tmp_path / f"{i}"), b"x")
    assert open_files() <= before + 10
    assert all(disk.read(str(tmp_path / f"{i}"), 0, 9) == b"xx" for i in range(300))
    disk.close(str(tmp_path))
    assert open_files() == before


def test_a_disk_that_is_dropped_leaves_nothing_open(tmp_path: Path) -> None:
    before = open_files()
    disk = RealDisk()
    for i in range(20):
        disk.append(str(tmp_path / f"{i}"), b"x")
    assert open_files() == before + 20
    del disk
    assert open_files() == before


@pytest.mark.parametrize("exchanges", [True, False])
def test_old_contents_long_or_short_leave_nothing_in_the_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exchanges: bool
) -> None:
    if not exchanges:
        monkeypatch.setattr("reference.adapters.disk._renameat2", None)
    disk, path = RealDisk(), str(tmp_path / "f")
    for data in (b"longest", b"short", b"", b"longer", b"long"):
        disk.replace(path, data)
        assert Path(path).read_bytes() == data
        assert disk.list(str(tmp_path)) == ["f"]


def test_a_directory_is_not_replaced(tmp_path: Path) -> None:
    disk, path = RealDisk(), str(tmp_path / "d")
    disk.make_directory(path)
    with pytest.raises(IsADirectoryError):
        disk.replace(path, b"data")


def test_a_replaced_file_is_read_anew(tmp_path: Path) -> None:
    disk, path = RealDisk(), str(tmp_path / "f")
    disk.replace(path, b"old")
    assert disk.read(path, 0, 9) == b"old"
    disk.replace(path, b"newer")
    assert disk.read(path, 0, 9) == b"newer"
    assert disk.list(str(tmp_path)) == ["f"]


def test_what_is_written_after_a_rename_goes_to_the_renamed_file(tmp_path: Path) -> None:
    disk, source, target = RealDisk(), str(tmp_path / "source"), str(tmp_path / "target")
    disk.append(target, b"old")
    disk.append(source, b"new")
    disk.rename(source, target)
    disk.append(target, b"er")
    assert Path(target).read_bytes() == b"newer"


def test_a_replacement_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    disk, path = RealDisk(), tmp_path / "f"
    disk.replace(str(path), b"old")
    (tmp_path / "f.tmp").mkdir()
    with pytest.raises(OSError):
        disk.replace(str(path), b"new")
    assert path.read_bytes() == b"old"


def test_renames_and_removes_directories_with_open_files(tmp_path: Path) -> None:
    disk = RealDisk()
    old, new = str(tmp_path / "old"), str(tmp_path / "new")
    before = open_files()
    disk.make_directory(old)
    disk.make_directory(old)
    disk.append(f"{old}/f", b"x")
    disk.rename(old, new)
    assert disk.exists(f"{new}/f")
    assert not disk.exists(f"{old}/f")
    disk.make_directory(old)
    disk.append(f"{old}/f", b"fresh")
    assert disk.read(f"{old}/f", 0, 9) == b"fresh"
    for path in (old, new, f"{new}/absent"):
        disk.remove(path)
    assert disk.list(str(tmp_path)) == []
    assert disk.list(old) == []
    assert open_files() == before


def test_what_is_not_there_is_an_error(tmp_path: Path) -> None:
    disk, path = RealDisk(), str(tmp_path / "absent")
    for call in (lambda: disk.read(path, 0, 1), lambda: disk.size(path), lambda: disk.fsync(path)):
        with pytest.raises(FileNotFoundError):
            call()
    assert not disk.exists(path)
