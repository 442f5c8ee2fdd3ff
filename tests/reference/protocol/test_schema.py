"""Entities built from dictionaries and lists are what their classes make."""

from __future__ import annotations

import copy
import dataclasses
import pickle

import pytest
from kio.schema.fetch.v4.request import FetchPartition as FetchPartitionV4
from kio.schema.fetch.v12.response import EpochEndOffset
from kio.schema.fetch.v17.request import FetchPartition
from kio.static.primitive import i32

from nemesis.reference.protocol.schema import (
    assembler,
    build,
    builder,
    field_defaults,
    maker,
    tagged_shapes,
    untagged_shapes,
)

VALUES = {
    "partition": 1,
    "current_leader_epoch": 2,
    "fetch_offset": 3,
    "last_fetched_epoch": 4,
    "log_start_offset": 5,
    "partition_max_bytes": 6,
}
EXPECTED = FetchPartition(**VALUES)  # type: ignore[arg-type]


def test_a_made_entity_is_one_of_its_class() -> None:
    made = maker(FetchPartition)(**VALUES)

    assert type(made) is FetchPartition
    assert made == EXPECTED
    assert hash(made) == hash(EXPECTED)
    assert repr(made) == repr(EXPECTED)
    assert pickle.loads(pickle.dumps(made)) == EXPECTED
    assert copy.deepcopy(made) == EXPECTED
    assert dataclasses.replace(made, partition=i32(9)).partition == 9


def test_a_made_entity_is_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        maker(FetchPartition)(**VALUES).partition = 2


def test_a_made_entity_has_the_defaults_of_its_class() -> None:
    assert maker(EpochEndOffset)() == EpochEndOffset()


@pytest.mark.parametrize("values", [{}, {**VALUES, "unheard_of": 1}])
def test_a_maker_wants_the_fields_of_its_class(values: dict[str, int]) -> None:
    with pytest.raises(TypeError):
        maker(FetchPartition)(**values)


def test_a_builder_drops_what_its_version_cannot_say() -> None:
    built = builder(FetchPartitionV4)(VALUES)

    assert built == FetchPartitionV4(partition=1, fetch_offset=3, partition_max_bytes=6)  # type: ignore[arg-type]
    assert built == build(FetchPartitionV4, **VALUES)


def test_an_assembler_takes_the_values_in_wire_order_and_tagged_ones_last() -> None:
    shapes = [*untagged_shapes(FetchPartition), *tagged_shapes(FetchPartition)]

    assert [shape.name for shape in shapes] == [*VALUES, "replica_directory_id"]
    values = [(field_defaults(FetchPartition) | VALUES)[shape.name] for shape in shapes]
    assert assembler(FetchPartition)(values) == EXPECTED
