"""Every declared field is constrained by a property, read by one, or has a reason why not."""

from __future__ import annotations

from nemesis.checkers.fields import PAGE, Field, coverage, declared_fields, fields_page, reason

NEW_KINDS = (
    "broker-change-handled",
    "controlled-shutdown-handled",
    "partition-metadata",
)


def test_the_page_is_current() -> None:
    """``python -m nemesis.checkers.fields`` writes it; read the difference before you commit it."""
    assert PAGE.read_text() == fields_page()


def test_a_field_that_nothing_constrains_or_reads_has_a_reason() -> None:
    assert [
        field
        for field, known in coverage().items()
        if not known.constrained_by and not known.read_by and reason(field) is None
    ] == []


def test_a_field_that_is_constrained_needs_no_reason_of_its_own() -> None:
    """A reason that has become wrong is taken out: the column has a property now."""
    for field, known in coverage().items():
        if known.constrained_by:
            assert field.kind != "znode-refused"


def test_what_a_property_constrains_is_proved_by_a_pair_of_histories() -> None:
    mark = coverage()[Field("high-watermark", None, "high_watermark")]
    assert {"hw-bounded", "hw-grows"} <= set(mark.constrained_by)
    leaders = coverage()[Field("partition-metadata", None, "leader_epoch")]
    assert set(leaders.constrained_by) == {
        "control-requests-applied",
        "metadata-never-back",
        "metadata-answered",
    }
    assert coverage()[Field("znode", None, "wall_ms")].constrained_by == ()


def test_a_field_that_is_only_grouped_by_is_not_taken_for_a_field() -> None:
    columns = {field.column for field in declared_fields()}
    assert columns.isdisjoint({"time", "process", "topic", "partition"})
