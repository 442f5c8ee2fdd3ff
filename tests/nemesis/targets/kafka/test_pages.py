"""The tables of ``docs/kafka.md`` are those that the code gives."""

from __future__ import annotations

from nemesis.targets.kafka.pages import PAGE, judged_table, releases_table, replaced


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


def test_a_property_states_what_each_configuration_shows() -> None:
    rows = judged_table().splitlines()
    assert "| `hw-bounded` | no | in part | no | in part |" in rows
    assert "| `lost-write` | yes | yes | yes | yes |" in rows
    assert "| `one-quorum-leader` | no | no | yes | yes |" in rows
    assert not any("`ack-after-commit`" in row for row in rows)
