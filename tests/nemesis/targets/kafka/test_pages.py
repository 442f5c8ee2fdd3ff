"""The tables of ``docs/kafka.md`` are those that the table of releases and the properties give."""

from __future__ import annotations

from nemesis.targets.kafka.pages import PAGE, releases_table, replaced


def test_the_page_has_the_present_tables() -> None:
    """``python -m nemesis.targets.kafka.pages`` writes them; read the difference before you commit it."""
    page = PAGE.read_text("utf-8")
    assert replaced(page) == page


def test_a_release_states_its_adjustments() -> None:
    rows = releases_table().splitlines()
    assert (
        "| 2.1 | no: lacks Metadata in version 12 | 2.1.1 | ZooKeeper | `kafka_2.12` | 3.8.4 |"
        in rows
    )
    assert "| 3.9 | yes | 3.9.1 | ZooKeeper | `kafka_2.13` | its own |" in rows
    assert "| 3.4 | yes | no | ZooKeeper | `kafka_2.13` | its own |" in rows
