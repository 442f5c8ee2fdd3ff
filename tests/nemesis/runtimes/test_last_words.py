"""What a node printed last, as the message about its exit has it."""

from __future__ import annotations

import pytest

from nemesis.interfaces.errors import NodeExited
from nemesis.runtimes.last_words import last_words, raise_if_refused
from nemesis.support.errors import UsageError

REFUSAL = "org.apache.kafka.common.config.ConfigException: Invalid value x for configuration min.insync.replicas"
TRACE = f"""\
[2026-11-26 20:40:10,389] ERROR Exiting Kafka due to fatal exception (kafka.Kafka$)
{REFUSAL}
\tat org.apache.kafka.common.config.ConfigDef.parseType(ConfigDef.java:776) ~[kafka-clients-3.9.1.jar:?]
\tat kafka.server.KafkaConfig.<init>(KafkaConfig.scala:182) ~[kafka_2.13-3.9.1.jar:?]
\tat kafka.Kafka.main(Kafka.scala) [kafka_2.13-3.9.1.jar:?]
"""


@pytest.mark.parametrize(
    ("printed", "words"),
    [
        (TRACE, REFUSAL),
        (f"{TRACE}Caused by: java.io.IOException: disk\n\t... 12 more\n", "Caused by: java.io.IOException: disk"),
        ("first\nno znode\n\n", "no znode"),
        ("  at last it ended", "at last it ended"),
        ("", "it said nothing"),
    ],
)  # fmt: skip
def test_frames_of_a_stack_trace_are_passed_over(printed: str, words: str) -> None:
    assert last_words(printed) == words


def test_a_refused_configuration_is_the_mistake_of_the_user() -> None:
    with pytest.raises(
        UsageError,
        match=r"broker configuration: Invalid value x for configuration min\.insync\.replicas.*: choose another value",
    ):
        raise_if_refused(NodeExited(f"broker-1 exited with code 1: {REFUSAL} (see broker-1.log)"))


def test_another_exit_is_not() -> None:
    raise_if_refused(NodeExited("broker-1 exited with code 1: no znode (see broker-1.log)"))
