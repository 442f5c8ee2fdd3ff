from __future__ import annotations

import errno
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from nemesis.reference.adapters.disk import RealDisk
from nemesis.reference.log.errors import InconsistentTopicIdError, KafkaStorageError
from nemesis.reference.trace import Kind
from tests.reference.cluster.hosting import Trace
from tests.reference.log.batches import batch
from tests.reference.log.log_managers import A0, A1, B0, ID, OTHER_ID, manager


def test_logs_come_back_with_records_ids_and_high_watermarks(tmp_path: Path) -> None:
    first = manager(tmp_path)
    for topic_partition, count in ((A0, 3), (A1, 5), (B0, 2)):
        log = first.get_or_create_log(topic_partition, ID, is_new=True)
        log.append_as_leader(batch(count), 0)
        log.update_high_watermark(count - 1)
    first.checkpoint_high_watermarks()
    second = manager(tmp_path)
    loaded = {
        tp: (log.high_watermark, log.log_end_offset, log.topic_id)
        for tp, log in second.all_logs().items()
    }
    assert loaded == {A0: (2, 3, ID), A1: (4, 5, ID), B0: (1, 2, ID)}


def test_the_checkpoint_lists_logs_that_nobody_gave_an_offset_for(tmp_path: Path) -> None:
    """KAFKA-1647: a follower without a known leader must not lose its high watermark."""
    first = manager(tmp_path)
    for topic_partition in (A0, A1):
        log = first.get_or_create_log(topic_partition, ID, is_new=True)
        log.append_as_leader(batch(4), 0)
        log.update_high_watermark(3)
    first.checkpoint_high_watermarks({A0: 2})
    assert first.read_high_watermarks() == {A0: 2, A1: 3}
    text = (tmp_path / "replication-offset-checkpoint").read_text()
    assert text == "0\n2\na 0 2\na 1 3\n"


def test_a_checkpointed_high_watermark_is_clamped_to_what_is_there(tmp_path: Path) -> None:
    log = manager(tmp_path).get_or_create_log(A0, ID, is_new=True)
    log.append_as_leader(batch(2), 0)
    (tmp_path / "replication-offset-checkpoint").write_text("0\n1\na 0 99\n")
    again = manager(tmp_path).get_log(A0)
    assert again is not None
    assert again.high_watermark == 2


def test_a_topic_created_anew_does_not_inherit_a_high_watermark(tmp_path: Path) -> None:
    first = manager(tmp_path)
    log = first.get_or_create_log(A0, ID, is_new=True)
    log.append_as_leader(batch(4), 0)
    log.update_high_watermark(4)
    first.checkpoint_high_watermarks()
    assert first.delete_log(A0)
    assert not first.delete_log(A0)
    assert first.get_log(A0) is None
    log = first.get_or_create_log(A0, OTHER_ID, is_new=True)
    log.append_as_leader(batch(4), 0)
    again = manager(tmp_path).get_log(A0)
    assert again is not None
    assert (again.high_watermark, again.topic_id) == (0, OTHER_ID)


def test_a_deletion_that_was_interrupted_is_finished(tmp_path: Path) -> None:
    first = manager(tmp_path)
    for topic_partition in (A0, A1):
        first.get_or_create_log(topic_partition, ID, is_new=True).append_as_leader(batch(), 0)
    first.checkpoint_high_watermarks()
    (tmp_path / "a-0").rename(tmp_path / f"a-0.{1:032x}-delete")
    second = manager(tmp_path)
    assert list(second.all_logs()) == [A1]
    assert not (tmp_path / f"a-0.{1:032x}-delete").exists()
    assert second.read_high_watermarks() == {A1: 0}


def test_only_what_a_broker_renamed_is_deleted(tmp_path: Path) -> None:
    (tmp_path / "backup-delete").mkdir()
    (tmp_path / "backup-delete" / "precious").write_text("kept")
    (tmp_path / "a-0-delete").touch()
    assert not manager(tmp_path).all_logs()
    assert (tmp_path / "backup-delete" / "precious").read_text() == "kept"
    assert (tmp_path / "a-0-delete").exists()


def test_another_topic_id_is_refused(tmp_path: Path) -> None:
    logs = manager(tmp_path)
    log = logs.get_or_create_log(A0, ID, is_new=True)
    assert logs.get_or_create_log(A0, None, is_new=False) is log
    with pytest.raises(InconsistentTopicIdError):
        logs.get_or_create_log(A0, OTHER_ID, is_new=False)


def test_new_logs_go_where_the_fewest_are(tmp_path: Path) -> None:
    logs = manager(tmp_path / "one", tmp_path / "two")
    for topic_partition in (A0, A1, B0):
        logs.get_or_create_log(topic_partition, ID, is_new=True)
    assert (tmp_path / "one" / "a-0").exists()
    assert (tmp_path / "two" / "a-1").exists()
    assert (tmp_path / "one" / "b-c.d_e-0").exists()
    logs.close()
    assert len(manager(tmp_path / "one", tmp_path / "two").all_logs()) == 3


def test_logs_are_traced_as_closed_where_the_mark_of_a_clean_stop_is(tmp_path: Path) -> None:
    trace = Trace()
    logs = manager(tmp_path / "one", tmp_path / "two", tracer=trace)
    for topic_partition in (A0, A1):
        logs.get_or_create_log(topic_partition, ID, is_new=True).append_as_leader(batch(3), 0)
    (tmp_path / "two" / ".kafka_cleanshutdown").mkdir()
    logs.close()
    [closed] = trace.of(Kind.LOG_CLOSED)
    assert closed == {
        "topic": "a",
        "topic_id": str(ID),
        "partition": 0,
        "log_dir": str(tmp_path / "one"),
        "log_start_offset": 0,
        "log_end_offset": 3,
        "high_watermark": 0,
    }


def test_foreign_files_in_a_log_directory_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "lost+found").mkdir()
    (tmp_path / "meta.properties").write_text("broker.id=1\n")
    assert not manager(tmp_path).all_logs()
    assert (tmp_path / "meta.properties").exists()


class FailingDisk(RealDisk):
    """One directory that cannot be listed."""

    def __init__(self, broken: Path) -> None:
        super().__init__()
        self.broken = str(broken)

    def list(self, path: str) -> Sequence[str]:
        if path.startswith(self.broken):
            raise OSError(errno.EIO, "Input/output error")
        return super().list(path)


def test_a_broken_directory_goes_offline_and_hides_no_old_replica(tmp_path: Path) -> None:
    good, two = tmp_path / "one", tmp_path / "two"
    logs = manager(good, two, disk=FailingDisk(two))
    assert logs.live_log_dirs == (str(good),)
    with pytest.raises(KafkaStorageError):
        logs.get_or_create_log(A0, ID, is_new=False)
    logs.get_or_create_log(A0, ID, is_new=True)
    assert (good / "a-0").exists()


def test_no_directory_left_is_an_error(tmp_path: Path) -> None:
    logs = manager(tmp_path, disk=FailingDisk(tmp_path), load=False)
    with pytest.raises(KafkaStorageError, match="no log directory"):
        logs.load_logs()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("0\n1\na 0 x\n", "'x'"),
        ("rubbish\n", r"begins with the lines \['rubbish'\]"),
        ("0\n2\na 0 1\n", r"the number of entries, of which there are 1"),
        ("0\n1\na 0\n", "an entry has not 3 fields"),
    ],
)
def test_a_malformed_checkpoint_takes_its_directory_offline(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, text: str, sentence: str
) -> None:
    manager(tmp_path)
    (tmp_path / "replication-offset-checkpoint").write_text(text)
    with pytest.raises(KafkaStorageError):
        manager(tmp_path)
    assert re.search(f"replication-offset-checkpoint: .*{sentence}", caplog.text)
