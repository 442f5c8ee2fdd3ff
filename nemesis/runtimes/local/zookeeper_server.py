"""A real ZooKeeper server, standalone, from the jars that PySpark ships.

Session time-outs may be as short as a second, so that a run of a minute sees several expiries. The log is not
forced to disk on each commit: SIGKILL keeps the page cache, a power cut is not a fault of this runtime, and a slow
disk would expire sessions that nobody attacked. Nothing purges the transaction logs: they are part of the history.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from nemesis.history.java_locale import JAVA_LOCALE
from nemesis.interfaces.links import Address
from nemesis.runtimes.local.node_process import NodeProcess
from nemesis.support.java import properties_text, require_java, zookeeper_classpath
from nemesis.support.journal import Journal

MAIN_CLASS = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
MINIMUM_SESSION_TIMEOUT_MS = 1_000
MAXIMUM_SESSION_TIMEOUT_MS = 60_000

LOGGING = """\
status = ERROR
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{ISO8601} %-5p [%t:%c{1}] %m%n
rootLogger.level = INFO
rootLogger.appenderRef.console.ref = console
"""

JVM_OPTIONS = (
    "-Xmx256m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Dzookeeper.forceSync=no",
    "-Dzookeeper.preAllocSize=1024",  # in KiB; the default would fill each log up to 64 MiB
)


def zookeeper_process(
    name: str,
    address: Address,
    *,
    tick_time_ms: int,
    run_directory: Path,
    journal: Journal,
    environment: Mapping[str, str],
) -> NodeProcess:
    """Write the server's configuration and return its process, not yet started.

    Raises ``MissingRequirement`` without Java or the jars. The transaction log is in ``data_directory``.
    """
    java, jars = require_java(), zookeeper_classpath()
    config = run_directory / "config"
    config.mkdir(parents=True, exist_ok=True)
    data = data_directory(run_directory, name)
    data.mkdir(parents=True, exist_ok=True)
    settings = {
        "tickTime": tick_time_ms,
        "minSessionTimeout": MINIMUM_SESSION_TIMEOUT_MS,
        "maxSessionTimeout": MAXIMUM_SESSION_TIMEOUT_MS,
        "dataDir": data,
        "clientPortAddress": address.host,
        "clientPort": address.port,
        "maxClientCnxns": 0,
        "admin.enableServer": "false",
        "4lw.commands.whitelist": "*",
    }
    config_file = config / f"{name}.cfg"
    config_file.write_text(properties_text(settings), encoding="ascii")
    logging_file = config / "zookeeper-log4j2.properties"
    logging_file.write_text(LOGGING, encoding="ascii")
    command = [
        str(java),
        *JVM_OPTIONS,
        f"-Dlog4j2.configurationFile={logging_file.as_uri()}",
        "-cp",
        ":".join(map(str, jars)),
        MAIN_CLASS,
        str(config_file),
    ]
    return NodeProcess(
        name,
        command,
        log=run_directory / "logs" / f"{name}.log",
        journal=journal,
        environment={**environment, **JAVA_LOCALE},
    )


def data_directory(run_directory: Path, name: str) -> Path:
    """Return the server's data directory; its ``version-2/log.*`` are the transaction logs."""
    return run_directory / "data" / name
