"""A broker of the chosen target as a process of this machine.

In the run's directory: its configuration is ``config/broker-N.json``, its data ``data/broker-N``, its trace
``raw/broker-N.jsonl`` (all its lives append to it) and what it prints ``logs/broker-N.log``.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from nemesis.interfaces.links import Address
from nemesis.runtimes.local.node_process import NodeProcess
from nemesis.support.journal import Journal
from nemesis.targets import Target
from nemesis.targets.base import BrokerEndpoint, broker_id_of, log_dirs_in, seed_of_broker


def broker_endpoint(
    name: str,
    *,
    bind: Address,
    advertised: Address,
    zookeeper_connect: str,
    run_directory: Path,
    seed: int,
    tracing: bool,
    log_dirs: int,
    voters: tuple[tuple[int, Address], ...] = (),
) -> BrokerEndpoint:
    """Return where the broker called ``broker-N`` lives and keeps its files."""
    broker_id = broker_id_of(name)
    return BrokerEndpoint(
        broker_id=broker_id,
        bind=bind,
        advertised=advertised,
        zookeeper_connect=zookeeper_connect,
        log_dirs=log_dirs_in(run_directory / "data" / name, log_dirs),
        trace_file=run_directory / "raw" / f"{name}.jsonl" if tracing else None,
        seed=seed_of_broker(seed, broker_id),
        voters=voters,
    )


def broker_process(
    name: str,
    endpoint: BrokerEndpoint,
    *,
    target: Target,
    properties: Mapping[str, object],
    mutant: str | None,
    run_directory: Path,
    journal: Journal,
    environment: Mapping[str, str],
    disk_commands: Path | None,
) -> NodeProcess:
    """Write the broker's configuration and return its process, not yet started; raises ``UsageError``."""
    all_properties = target.broker_properties(endpoint, properties)
    config_file = run_directory / "config" / f"{name}.json"
    for folder in (config_file.parent, *endpoint.log_dirs):
        folder.mkdir(parents=True, exist_ok=True)
    if endpoint.trace_file is not None:
        endpoint.trace_file.parent.mkdir(parents=True, exist_ok=True)
    config_file.write_bytes(msgspec.json.format(msgspec.json.encode(all_properties), indent=2))
    program = target.broker_program(
        endpoint.broker_id, config_file, mutant, disk_commands=disk_commands
    )
    return NodeProcess(
        name,
        program.command,
        log=run_directory / "logs" / f"{name}.log",
        journal=journal,
        environment=environment,
    )
