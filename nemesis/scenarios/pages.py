"""The page ``docs/scenarios.md`` and the JSON schema beside it, from the structs of scenarios and workloads.

``python -m nemesis.scenarios.pages`` writes both; a test compares them. A field's meaning is the text below it in the
source, and its range is what its type allows.
"""

from __future__ import annotations

import ast
import inspect as sources
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml
from msgspec import inspect

from nemesis.faults import FAULTS
from nemesis.faults.recipes import RECIPES
from nemesis.runtimes.kinds import RUNTIMES
from nemesis.scenarios.scenario import SAFE_BROKER, Scenario
from nemesis.targets import TARGETS
from nemesis.workloads import WORKLOADS
from nemesis.workloads.produce_consume_options import ProduceConsumeOptions

DOCS: Final = Path(__file__).resolve().parents[2] / "docs"
COMMON: Final = "produce-consume"
PAGE: Final = DOCS / "scenarios.md"
SCHEMA: Final = DOCS / "scenario.schema.json"
EXAMPLE: Final = """name: short-pauses
summary: short pauses and kills of brokers
time_limit_s: 30
faults:
  kinds: [pause, kill]
  recipes: []
  duration_s: [3, 5]
objectives:
  leaderless_s: 6
"""

HEAD: Final = f"""# Scenarios of your own

A scenario is a YAML file. It states which cluster runs, what its clients do, and which faults may happen. The seed of a
run then decides which of them happen, when, and to which nodes. This scenario pauses and kills brokers:

```yaml
{EXAMPLE}```

1. Begin with a copy of a scenario: `nemesis scenario partition-controller > short-pauses.yaml` prints it with all its
   defaults. Change `name` and what you want to change. You may delete a key if its value is the default below.
2. Run it: `nemesis run short-pauses.yaml`. An unknown key or a value out of range is refused before the run.
3. Read the list of faults that the seed has drawn: `plan.yaml` in the run's directory. `--plan FILE` runs exactly these
   faults again.

`target` in a scenario is one of three: `reference` (nemesis' own reference brokers), `kafka` or `mixed`. `nemesis list`
has all names that a scenario can use.

An editor with a YAML language server checks the file while you write, with [the JSON schema](scenario.schema.json).
Begin the file with the line `# yaml-language-server: $schema=docs/scenario.schema.json`.

## Phases of a run

| phase | what happens | how long |
|---|---|---|
| `start` | brokers and ZooKeeper start | until they answer |
| `warm-up` | topics are created, and clients begin to work | `warm_up_s` after the clients begin |
| `faults` | faults are injected, while clients work | until `heal_s` before the time limit |
| `heal` | the last faults are undone | until the time limit, or longer if a fault cannot be undone in time |
| `quiet` | clients work without faults | `quiet_s` |
| `final-reads` | each partition is read to its end | at most `final_reads_s` |
| `convergence` | all replicas are in sync | at most `convergence_s` after the last fault was undone; at least 2 s |
| `checking` | the history is judged | a few seconds |

`time_limit_s` covers warm-up, faults and heal. Undoing a fault may take long, for example if a broker must first copy
its logs. Then the run takes longer than the time limit.

## Faults that the cluster notices

Kafka notices after a time-out that a broker does not answer: when the broker's session with ZooKeeper, or with KRaft's
controller, has expired. If a session lasts two seconds, Kafka cannot notice a pause of one second. Before a run,
nemesis lists each such fault as *not detectable*. `run.json` and the report list them,
too. If Kafka could notice no fault of the plan, the run is `unknown`, unless the scenario states `expect: unnoticed`.

Kafka also notices a network partition or a pause when a follower leaves the ISR, after `replica.lag.time.max.ms`. For
these faults the shorter of the two times counts.

That is not the same as a fault *without effect*. For example, nemesis measures whether a pause really stopped the
process, even if the cluster does not notice the pause. A single fault without effect makes a run `unknown`.

With Kafka's own defaults a session lasts 18 s, and a follower leaves the ISR after 30 s. Most faults of a run are
shorter. So nemesis sets the following broker properties for each target and runtime, unless a scenario sets them. With
KRaft, `broker.session.timeout.ms` gets the value of `zookeeper.session.timeout.ms`, and `broker.heartbeat.interval.ms`
a quarter of it, unless the scenario sets them. The last property has Kafka's default. The table states it because an
unclean election may lose records:

"""


OBJECTIVES: Final = """
## What happens beyond an objective

An objective is the longest outage that you accept. Each objective is a property with a verdict of its own:

| longest outage of this kind | the objective is | the run is |
|---|---|---|
| not longer than the objective | `valid` | what the other properties decide |
| longer | `invalid`, with a finding for each | `invalid` (exit code 1) |
| [not measured](limits.md#what-cannot-be-decided) | `unknown` | `unknown` (exit code 2), if nothing is `invalid` |

An objective also limits outages while faults are active, so a fault does not excuse a longer outage. Without
objectives the report only states how long outages lasted.
"""

FOOT: Final = """
## For maintainers

`python -m nemesis.scenarios.pages` writes this page and its JSON schema from the structs of scenarios and workloads.
A test compares them.
"""


def full(scenario: Scenario) -> dict[str, Any]:
    """Return the scenario as plain data with all defaults, those of its workload's options, too."""
    data: dict[str, Any] = msgspec.to_builtins(scenario)
    options = options_of(scenario.workload.name)
    converted = msgspec.convert(dict(scenario.workload.options), options, strict=True)
    data["workload"]["options"] = msgspec.to_builtins(converted)
    return data


def as_yaml(scenario: Scenario) -> str:
    """Return the text of a scenario file with all defaults."""
    return yaml.safe_dump(full(scenario), sort_keys=False, allow_unicode=True)


def options_of(workload: str) -> type[msgspec.Struct]:
    """Return the struct of a workload's options."""
    options: type[msgspec.Struct] = WORKLOADS[workload].options_type  # type: ignore[attr-defined]
    return options


def schema() -> dict[str, Any]:
    """Return the JSON schema of scenario files, with meanings, and with the names that registries hold."""
    made = msgspec.json.schema(Scenario)
    parts = made["$defs"]
    for struct in _structs(Scenario):
        for name, meaning in meanings(struct).items():
            parts[struct.__name__]["properties"][name]["description"] = meaning
    scenario, faults = parts["Scenario"]["properties"], parts["FaultSettings"]["properties"]
    scenario["target"]["enum"] = list(TARGETS)
    scenario["runtime"]["enum"] = list(RUNTIMES)
    parts["WorkloadSettings"]["properties"]["name"]["enum"] = list(WORKLOADS)
    faults["kinds"]["items"]["enum"] = list(FAULTS)
    faults["recipes"]["items"]["enum"] = list(RECIPES)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **made}


def schema_text() -> str:
    """Return the content of the schema's file."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


def page() -> str:
    """Return the text of the page."""
    return "".join(f"{line}\n" for line in _lines())


def meanings(struct: type[msgspec.Struct]) -> dict[str, str]:
    """Return the text below each field in the source, of the structs that it extends, too."""
    texts: dict[str, str] = {}
    for base in reversed(struct.__mro__):
        if base is msgspec.Struct or not issubclass(base, msgspec.Struct):
            continue
        (definition,) = ast.parse(sources.getsource(base)).body
        assert isinstance(definition, ast.ClassDef)
        texts.update(_described(definition))
    return {name: text for name, text in texts.items() if name in struct.__struct_fields__}


def _described(definition: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for field, text in zip(definition.body, definition.body[1:], strict=False):
        if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
            continue
        if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
            yield field.target.id, " ".join(str(text.value.value).replace("``", "`").split())


def _lines() -> Iterator[str]:
    yield from HEAD.splitlines()
    yield "| property | value |"
    yield "|---|---|"
    for name, value in SAFE_BROKER.items():
        yield f"| `{name}` | `{_plain(value)}` |"
    yield from OBJECTIVES.splitlines()
    for struct in _structs(Scenario):
        yield ""
        yield f"## {_title(struct)}"
        yield ""
        yield from _table(struct)
    for workload in WORKLOADS:
        yield ""
        yield f"## Options of the workload {workload}"
        yield ""
        yield from _option_lines(workload)
    yield from FOOT.splitlines()


def _option_lines(workload: str) -> Iterator[str]:
    """Yield the options of a workload; of one that extends the common options, what is different."""
    options = options_of(workload)
    if options is ProduceConsumeOptions or not issubclass(options, ProduceConsumeOptions):
        yield from _table(options)
        return
    yield f"The options of `{COMMON}`, and these, which are new or have another default:"
    yield ""
    yield from _table(options, without=frozenset(_rows(ProduceConsumeOptions)))


def _structs(struct: type[msgspec.Struct]) -> Iterator[type[msgspec.Struct]]:
    """Yield the struct, and the structs of its fields in their order."""
    yield struct
    for field in msgspec.structs.fields(struct):
        if isinstance(field.type, type) and issubclass(field.type, msgspec.Struct):
            yield from _structs(field.type)


def _title(struct: type[msgspec.Struct]) -> str:
    for field in msgspec.structs.fields(Scenario):
        if field.type is struct:
            return f"Keys of `{field.name}`"
    return "Keys of a scenario"


def _table(struct: type[msgspec.Struct], without: frozenset[str] = frozenset()) -> Iterator[str]:
    yield "| key | value | default | meaning |"
    yield "|---|---|---|---|"
    yield from (row for row in _rows(struct) if row not in without)


def _rows(struct: type[msgspec.Struct]) -> Iterator[str]:
    texts = meanings(struct)
    for field in inspect.type_info(struct).fields:  # type: ignore[attr-defined]
        cells = (f"`{field.name}`", _values(field.type), _default(field), texts.get(field.name, ""))
        yield f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


def _default(field: inspect.Field) -> str:
    if field.required:
        return "required"
    value = field.default_factory() if field.default is msgspec.NODEFAULT else field.default
    if isinstance(value, msgspec.Struct):
        return "see its table"
    if isinstance(value, tuple) and len(value) > 3:
        return f"{len(value)} names: see `nemesis scenario`"
    return f"`{_plain(msgspec.to_builtins(value))}`"


def _plain(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _values(allowed: inspect.Type) -> str:
    """Return what a type allows, in words."""
    match allowed:
        case inspect.Metadata():
            return _values(allowed.type)
        case inspect.BoolType():
            return "`true`, `false`"
        case inspect.IntType() | inspect.FloatType():
            word = "whole number" if isinstance(allowed, inspect.IntType) else "number"
            low = allowed.ge if allowed.ge is not None else allowed.gt
            more = "more than " if allowed.ge is None and allowed.gt is not None else ""
            return word if low is None else f"{word}, {more}{low:.15g} to {allowed.le:.15g}"
        case inspect.LiteralType():
            return ", ".join(f"`{_plain(value)}`" for value in allowed.values)
        case inspect.TupleType():
            return f"two of: {_values(allowed.item_types[0])}"
        case inspect.VarTupleType() | inspect.ListType():
            return f"list of: {_values(allowed.item_type)}"
        case inspect.DictType():
            return "mapping"
        case inspect.StructType():
            return "mapping"
        case inspect.UnionType():
            return " or ".join(_values(part) for part in allowed.types)
        case inspect.NoneType():
            return "null"
        case _:
            return "text"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
    SCHEMA.write_text(schema_text(), "utf-8")
