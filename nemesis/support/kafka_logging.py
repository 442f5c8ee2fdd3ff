"""What a Kafka broker logs, and where: to its standard output, and what it says of its replicas to a file, too.

Kafka before 4.0, as Apache distributes it, logs to reload4j; what ``nemesis fetch`` downloads logs to log4j 2 from 3.3
on. Only log4j 2 can write ``System.nanoTime()``, so only with it is there a file about replicas. No class of our own is
needed: its layout writes the line that ``nemesis.history.broker_logs`` reads, and its appender makes one ``write()``
of it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from nemesis.history.broker_logs import LAUNCHER, LOGS, LogLine
from nemesis.history.broker_logs import LOGGERS as REPLICA_LOGGERS

REPLICA_FILE: Final = "trace.file"
"""The property with the file for what a broker logs of its replicas; Kafka itself does not have it."""
LOG4J_2_JARS: Final = "log4j-core-2.*.jar"
_MIN_ISR: Final = "min.insync.replicas"
_UNCLEAN: Final = "unclean.leader.election.enable"
_RELOAD4J: Final = """\
log4j.rootLogger=INFO, stdout
log4j.appender.stdout=org.apache.log4j.ConsoleAppender
log4j.appender.stdout.layout=org.apache.log4j.PatternLayout
log4j.appender.stdout.layout.ConversionPattern=[%d] %p %m (%c)%n
"""
_LOG4J_2: Final = """\
shutdownHook = disable
appender.stdout.type = Console
appender.stdout.name = stdout
appender.stdout.layout.type = PatternLayout
appender.stdout.layout.pattern = [%d] %p %m (%c)%n
rootLogger.level = INFO
rootLogger.appenderRef.stdout.ref = stdout
"""
"""A broker that is asked to stop goes on for a while, and so does its log: log4j 2 would end it at once."""
_REPLICA_APPENDER: Final = """\
appender.replicas.type = File
appender.replicas.name = replicas
appender.replicas.fileName = {file}
appender.replicas.bufferedIo = false
appender.replicas.immediateFlush = true
appender.replicas.layout.type = PatternLayout
appender.replicas.layout.alwaysWriteExceptions = false
appender.replicas.layout.pattern = {{"t":%nano,"c":"%c","m":"%enc{{%m}}{{JSON}}"}}%n
"""
_REPLICA_LOGGER: Final = """\
logger.replicas{number}.name = {name}
logger.replicas{number}.level = {level}
logger.replicas{number}.additivity = false
logger.replicas{number}.appenderRef.stdout.ref = stdout
logger.replicas{number}.appenderRef.stdout.level = INFO
logger.replicas{number}.appenderRef.replicas.ref = replicas
"""


def has_log4j_2(jars: Path) -> bool:
    """Return whether the brokers of these jars log to log4j 2."""
    return any(jars.glob(LOG4J_2_JARS))


def log_option(settings: Path, jars: Path, replica_file: Path | None = None) -> str:
    """Write the settings of a broker's log beside ``settings``; return the option of the JVM that names them.

    ``replica_file``: where to write what is logged of replicas; needs log4j 2.
    """
    if not has_log4j_2(jars):
        assert replica_file is None, "refused before the run"
        return _written(settings.with_suffix(".log4j"), _RELOAD4J, "log4j.configuration")
    text = _LOG4J_2 if replica_file is None else _LOG4J_2 + _to(replica_file)
    file = settings.with_suffix(".log4j2.properties")
    return _written(file, text, "log4j2.configurationFile")


def _written(file: Path, text: str, option: str) -> str:
    file.write_text(text, encoding="utf-8")
    return f"-D{option}={file.resolve().as_uri()}"


def _to(file: Path) -> str:
    """Return the settings that send what replicas do to the file; the logs themselves are verbose."""
    loggers = [
        _REPLICA_LOGGER.format(number=n, name=name, level="TRACE" if name in LOGS else "INFO")
        for n, name in enumerate(REPLICA_LOGGERS)
    ]
    return "".join([_REPLICA_APPENDER.format(file=file), *loggers])


def begin_incarnation(file: Path, properties: Mapping[str, str]) -> None:
    """Add the line with which an incarnation of the broker begins, behind a line that its predecessor left torn."""
    line = LogLine(
        t=time.monotonic_ns(),
        c=LAUNCHER,
        m="start",
        min_insync_replicas=int(properties.get(_MIN_ISR, "1")),
        unclean_leader_election_enable=properties.get(_UNCLEAN, "false").lower() == "true",
    )
    with file.open("a+b", buffering=0) as stream:
        end = stream.seek(0, os.SEEK_END)
        stream.seek(max(0, end - 1))
        is_torn = end > 0 and stream.read(1) != b"\n"
        stream.write(b"\n" * is_torn + msgspec.json.encode(line) + b"\n")
