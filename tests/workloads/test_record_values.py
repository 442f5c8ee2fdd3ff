"""All of a record follows from its number, and a reader notices what does not."""

from __future__ import annotations

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nemesis.workloads.kafka.errors import ForeignRecord
from nemesis.workloads.kafka.record_batch import Record
from nemesis.workloads.reads import MAX_BYTES
from nemesis.workloads.record_values import RecordShape, new_record, number_of

RICH = RecordShape(bytes=50, headers=3, tombstone_percent=10, null_key_percent=20)
LARGE = RICH._replace(large_every=10)
shapes = st.sampled_from([RecordShape(50), RICH, LARGE, RecordShape(24, tombstone_percent=100)])


def read(number: int, shape: RecordShape = RICH) -> Record:
    return Record(7, *new_record(number, shape, b"key"))


@given(st.integers(0, 10**9), shapes)
def test_the_number_comes_back(number: int, shape: RecordShape) -> None:
    assert number_of(read(number, shape), shape) == number


def test_a_plain_record_has_key_and_value_only() -> None:
    assert new_record(12, RecordShape(5), b"key") == (b"key", b"12...", ())


def test_of_a_hundred_records_the_stated_shares_lack_value_and_key() -> None:
    records = [read(number) for number in range(500, 600)]
    assert sum(record.value is None for record in records) == 10
    assert sum(record.key is None for record in records) == 20
    assert {len(record.headers) for record in records} == {1, 2, 3, 4}


def test_every_tenth_record_is_large_and_no_codec_makes_it_smaller() -> None:
    records = [read(number, LARGE) for number in range(500, 520)]
    large = [record.value or b"" for record in records if len(record.value or b"") > 50]
    assert len(large) == 2
    assert all(len(zlib.compress(value)) > MAX_BYTES for value in large)


@pytest.mark.parametrize(
    "changed",
    [
        {"value": None},
        {"value": b"2" + b"." * 49},
        {"key": None},
        {"headers": ()},
        {"headers": read(1).headers[:1]},
        {"headers": (("other", b"1"), *read(1).headers[1:])},
        {"headers": (("number", b"2"), *read(1).headers[1:])},
        {"headers": (("number", b"x"), *read(1).headers[1:])},
    ],
)
def test_a_changed_record_is_noticed(changed: dict[str, object]) -> None:
    assert read(1).value is not None
    assert read(1).key is not None
    with pytest.raises(ForeignRecord):
        number_of(read(1)._replace(**changed), RICH)  # type: ignore[arg-type]
