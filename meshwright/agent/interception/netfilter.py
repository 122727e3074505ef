"""What is in force against what is wanted: from the output of `iptables-save` to one change. Pure.

A change is one input of `iptables-restore --noflush`, which the kernel takes table by table as a whole:
there is no moment without rules between the old ones and the new.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from meshwright.agent.interception.rules import PREFIX, Rules, chains

_RULE: Final = re.compile(r"-A (\S+) ")


@dataclass(frozen=True, slots=True)
class Table:
    """What a table holds of ours: chains, their rules, and the jumps into them from built-in chains."""

    chains: tuple[str, ...]
    rules: tuple[str, ...]
    jumps: tuple[str, ...]


def saved(text: str) -> dict[str, Table]:
    """Read the output of `iptables-save`, with or without counters; tables without ours are left out."""
    found: dict[str, Table] = {}
    for block in re.findall(r"^\*(\S+)\n(.*?)^COMMIT$", text, re.MULTILINE | re.DOTALL):
        name, lines = block[0], block[1].splitlines()
        ours = tuple(sorted(line[1:].split()[0] for line in lines if line.startswith(f":{PREFIX}")))
        rules = [re.sub(r"^\[\d+:\d+\] ", "", line) for line in lines]
        own = tuple(line for line in rules if line.startswith(f"-A {PREFIX}"))
        jumps = tuple(line for line in rules if _is_jump(line))
        if ours or jumps:
            found[name] = Table(ours, own, jumps)
    return found


def _is_jump(line: str) -> bool:
    """Say whether a rule outside our chains leads into one of them."""
    return line.startswith("-A ") and not line.startswith(f"-A {PREFIX}") and f" -j {PREFIX}" in line


def wanted_tables(tables: Rules) -> dict[str, Table]:
    """Return wanted rules in the form in which `saved` returns those in force."""
    return {
        name: Table(
            chains(lines),
            tuple(line for line in lines if not _is_jump(line)),
            tuple(line for line in lines if _is_jump(line)),
        )
        for name, lines in tables.items()
    }


def differences(in_force: dict[str, Table], wanted: Rules) -> tuple[str, ...]:
    """Say in what the rules in force differ from those wanted; nothing where they do not.

    Order counts within a chain, and does not between chains: each is tried from its own beginning.
    """
    found: list[str] = []
    target = wanted_tables(wanted)
    for name in sorted(in_force.keys() | target.keys()):
        here = _by_chain(in_force.get(name))
        there = _by_chain(target.get(name))
        found += [
            _difference(f"{name}/{chain}", here.get(chain), there.get(chain))
            for chain in sorted(here.keys() | there.keys())
            if here.get(chain) != there.get(chain)
        ]
    return tuple(found)


def _by_chain(table: Table | None) -> dict[str, list[str]]:
    if table is None:
        return {}
    found: dict[str, list[str]] = {chain: [] for chain in table.chains}
    for line in (*table.rules, *table.jumps):
        match = _RULE.match(line)
        if match is not None:
            found.setdefault(match[1], []).append(line)
    return found


def _difference(where: str, here: list[str] | None, there: list[str] | None) -> str:
    if here is None:
        return f"{where} is missing"
    if there is None:
        return f"{where} is not wanted: {'; '.join(here)}"
    missing = [line for line in there if line not in here]
    extra = [line for line in here if line not in there]
    if missing or extra:
        return f"{where}: missing {missing or 'nothing'}, not wanted {extra or 'nothing'}"
    return f"{where}: the same rules in another order, or twice"


def change(in_force: dict[str, Table], wanted: Rules) -> str:
    """Return the restore input that leads from what is in force to what is wanted; empty if it is there.

    Wanted rules replace ours as a whole; what is not ours is left alone. No rules wanted removes ours.
    """
    if not differences(in_force, wanted):
        return ""
    target = wanted_tables(wanted)
    lines: list[str] = []
    for name in sorted(in_force.keys() | target.keys()):
        lines += [f"*{name}", *_table_change(in_force.get(name), target.get(name)), "COMMIT"]
    return "".join(f"{line}\n" for line in lines)


def _table_change(here: Table | None, there: Table | None) -> Iterator[str]:
    """Yield the lines for one table: declaring a chain empties it, so it is filled as if it were new."""
    old = here or Table((), (), ())
    new = there or Table((), (), ())
    for chain in sorted({*old.chains, *new.chains}):
        yield f":{chain} - [0:0]"
    yield from new.rules
    yield from (f"-D {line.removeprefix('-A ')}" for line in old.jumps)
    yield from new.jumps
    # All are empty by now, so none of them holds a reference to another.
    yield from (f"-X {chain}" for chain in old.chains if chain not in new.chains)
