"""Comparison of rules in force with wanted ones: output of `iptables-save` in, one change out. Pure.

A change is one input of `iptables-restore --noflush`. The kernel applies each table as a whole, so the old
rules are replaced by the new ones without a gap.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from meshwright.agent.interception.rules import PREFIX, Rules, chains

_RULE: Final = re.compile(r"-A (\S+) ")


@dataclass(frozen=True, slots=True)
class Table:
    """This program's part of a table: chains, their rules, and the jumps to them from built-in chains."""

    chains: tuple[str, ...]
    rules: tuple[str, ...]
    jumps: tuple[str, ...]


def saved(text: str) -> dict[str, Table]:
    """Parse the output of `iptables-save`, with or without counters; return this program's rules."""
    tables: dict[str, Table] = {}
    for block in re.findall(r"^\*(\S+)\n(.*?)^COMMIT$", text, re.MULTILINE | re.DOTALL):
        name, lines = block[0], block[1].splitlines()
        ours = tuple(sorted(line[1:].split()[0] for line in lines if line.startswith(f":{PREFIX}")))
        rules = [re.sub(r"^\[\d+:\d+\] ", "", line) for line in lines]
        own = tuple(line for line in rules if line.startswith(f"-A {PREFIX}"))
        jumps = tuple(line for line in rules if _is_jump(line))
        if ours or jumps:
            tables[name] = Table(ours, own, jumps)
    return tables


def _is_jump(line: str) -> bool:
    """Return whether a rule jumps from another chain into one of this program's."""
    return line.startswith("-A ") and not line.startswith(f"-A {PREFIX}") and f" -j {PREFIX}" in line


def wanted_tables(tables: Rules) -> dict[str, Table]:
    """Return wanted rules in the form of `saved`."""
    return {
        name: Table(
            chains(lines),
            tuple(line for line in lines if not _is_jump(line)),
            tuple(line for line in lines if _is_jump(line)),
        )
        for name, lines in tables.items()
    }


def differences(in_force: dict[str, Table], wanted: Rules) -> tuple[str, ...]:
    """Return the differences between rules in force and wanted, as sentences.

    Order matters within a chain, but not between chains, because each is evaluated from the beginning.
    """
    result: list[str] = []
    target = wanted_tables(wanted)
    for name in sorted(in_force.keys() | target.keys()):
        here = _by_chain(in_force.get(name))
        there = _by_chain(target.get(name))
        result += [
            _difference(f"{name}/{chain}", here.get(chain), there.get(chain))
            for chain in sorted(here.keys() | there.keys())
            if here.get(chain) != there.get(chain)
        ]
    return tuple(result)


def _by_chain(table: Table | None) -> dict[str, list[str]]:
    if table is None:
        return {}
    result: dict[str, list[str]] = {chain: [] for chain in table.chains}
    for line in (*table.rules, *table.jumps):
        match = _RULE.match(line)
        if match is not None:
            result.setdefault(match[1], []).append(line)
    return result


def _difference(where: str, here: list[str] | None, there: list[str] | None) -> str:
    if here is None:
        return f"{where} is missing"
    if there is None:
        return f"{where} must not exist: {'; '.join(here)}"
    missing = [line for line in there if line not in here]
    extra = [line for line in here if line not in there]
    if missing or extra:
        return f"{where}: missing rules: {missing or 'none'}; rules that must not exist: {extra or 'none'}"
    return f"{where}: the rules are in the wrong order, or some exist twice"


def change(in_force: dict[str, Table], wanted: Rules) -> str:
    """Return the restore input from the state in force to the wanted one; empty if they are equal.

    Wanted rules replace this program's rules as a whole, and others are left alone. Empty wanted rules remove
    this program's.
    """
    if not differences(in_force, wanted):
        return ""
    target = wanted_tables(wanted)
    lines: list[str] = []
    for name in sorted(in_force.keys() | target.keys()):
        lines += [f"*{name}", *_table_change(in_force.get(name), target.get(name)), "COMMIT"]
    return "".join(f"{line}\n" for line in lines)


def _table_change(here: Table | None, there: Table | None) -> Iterator[str]:
    """Yield the lines for one table. Declaring a chain empties it, so it is always filled completely."""
    old = here or Table((), (), ())
    new = there or Table((), (), ())
    for chain in sorted({*old.chains, *new.chains}):
        yield f":{chain} - [0:0]"
    yield from new.rules
    yield from (f"-D {line.removeprefix('-A ')}" for line in old.jumps)
    yield from new.jumps
    # All are empty now, so no chain refers to another and each can be deleted.
    yield from (f"-X {chain}" for chain in old.chains if chain not in new.chains)
