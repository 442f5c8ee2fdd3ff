"""One broker as a process: ``python -m nemesis.reference CONFIG.json``.

CONFIG.json holds the broker's properties under Kafka's names (see ``nemesis.reference.kafka_config``). The real
adapters are chosen here and nowhere else. The process runs until SIGTERM or SIGINT, logs to stderr, and exits with 1
and one sentence when it cannot start. It halts with 1 when its last log directory has failed.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random  # noqa: TID251  # seeded here, handed to everything else

from nemesis.history.recorder import FileSink, Recorder
from nemesis.reference.adapters.clock import monotonic_ns, wall_clock_ms
from nemesis.reference.adapters.disk import RealDisk
from nemesis.reference.adapters.log_dir_locks import locked_log_dirs
from nemesis.reference.adapters.process import halt
from nemesis.reference.adapters.sockets import RealSocketBuffers
from nemesis.reference.adapters.zookeeper import KazooZooKeeperClient
from nemesis.reference.exception_trace import traced_exceptions
from nemesis.reference.kafka_config import ConfigError, KafkaConfig
from nemesis.reference.ports import Disk
from nemesis.reference.server.broker_id_generation import with_broker_id
from nemesis.reference.server.kafka_server import STARTUP_ERRORS, KafkaServer
from nemesis.reference.trace import Kind, NullTracer, RecorderTracer, Tracer

logger = logging.getLogger(__name__)

FAILED = 1
ALLOCATIONS_BEFORE_COLLECTION = 50_000
"""Of objects that may be part of a cycle, more than were freed; Python's own is 700."""
USAGE = "usage: python -m nemesis.reference CONFIG.json"
HELP = f"""{USAGE}

Run one broker of the reference cluster until SIGTERM or SIGINT.

CONFIG.json is a JSON object of broker properties under Kafka's names:

  {{"broker.id": 1, "zookeeper.connect": "127.0.0.1:2181",
   "listeners": "PLAINTEXT://127.0.0.1:9092", "log.dirs": ["broker-1"]}}

A ZooKeeper server has to run. docs/reference.md starts one by hand.
"""


def main(arguments: list[str], *, open_disk: Callable[[], Disk] = RealDisk) -> None:
    """Run a broker until it is told to stop; raises SystemExit with a sentence when it cannot start."""
    if arguments in (["--help"], ["-h"]):
        sys.stdout.write(HELP)
        return
    if len(arguments) != 1:
        raise SystemExit(USAGE)
    logging.basicConfig(
        stream=sys.stderr,
        level=logging.INFO,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )
    collect_garbage_seldom()
    try:
        config = read_config(Path(arguments[0]))
        with locked_log_dirs(config.log_dirs):
            asyncio.run(run_broker(config, open_disk()))
    except (ConfigError, *STARTUP_ERRORS) as error:
        raise SystemExit(f"{type(error).__name__}: {error}") from error


def collect_garbage_seldom() -> None:
    """Let the collector look for cycles, of which a broker makes few, less often, and never among what was imported.

    A full collection walks every object while nothing else runs: with a thousand partitions 70 ms, several times while
    their leaders are elected.
    """
    gc.freeze()
    gc.set_threshold(ALLOCATIONS_BEFORE_COLLECTION)


def read_config(path: Path) -> KafkaConfig:
    """The validated configuration in a JSON file; raises ``ConfigError`` or OSError.

    Log directories are absolute, as in Kafka: clients are told of them and name them.
    """
    try:
        properties = json.loads(path.read_bytes())
    except ValueError as error:
        raise ConfigError(f"{path} is not JSON: {error}") from None
    if not isinstance(properties, dict):
        raise ConfigError(f"{path} does not hold a JSON object")
    log_dirs = properties.get("log.dirs")
    if isinstance(log_dirs, list) and all(isinstance(path, str) for path in log_dirs):
        properties["log.dirs"] = [path and str(Path(path).absolute()) for path in log_dirs]
    return KafkaConfig.from_properties(properties)


async def run_broker(config: KafkaConfig, disk: Disk) -> None:
    """Start the broker and serve until a signal comes, which may be before it has started."""
    incarnation = monotonic_ns()
    config = await with_broker_id(config, disk=disk, zookeeper=_zookeeper(config))
    tracer = open_tracer(config, incarnation)
    server = KafkaServer(
        config,
        disk=disk,
        zookeeper=_zookeeper(config),
        tracer=tracer,
        # Brokers draw topic ids: no two of them, and no two lives of one, may draw alike.
        rng=Random(f"{config.random_seed}/{config.broker_id}/{incarnation}"),
        wall_clock=wall_clock_ms,
        socket_buffers=RealSocketBuffers(),
    )
    this_task = asyncio.current_task()
    assert this_task is not None
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, this_task.cancel)
    with traced_exceptions(tracer, STARTUP_ERRORS):
        try:
            await server.startup()
            tracer.event(Kind.EXCEPTIONS_WATCHED)
            logger.info("broker %s listens on %s", config.broker_id, config.listeners)
            await server.await_failure()
            halt(FAILED)
        except asyncio.CancelledError:
            logger.info("broker %s was told to stop", config.broker_id)
            await server.controlled_shutdown()
        finally:
            await server.shutdown()


def _zookeeper(config: KafkaConfig) -> KazooZooKeeperClient:
    return KazooZooKeeperClient(
        config.zookeeper_connect, config.zookeeper_session_timeout_ms, config.source_host
    )


def open_tracer(config: KafkaConfig, incarnation: int) -> Tracer:
    """The broker's trace, appended to ``trace.file``; nothing is recorded when that is not set."""
    if config.trace_file is None:
        return NullTracer()
    recorder = Recorder(
        FileSink(Path(config.trace_file)),
        process=f"broker-{config.broker_id}",
        clock=monotonic_ns,
        node=config.broker_id,
        incarnation=incarnation,
    )
    return RecorderTracer(recorder)


if __name__ == "__main__":
    main(sys.argv[1:])
