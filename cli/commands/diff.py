"""`meshwright diff`: what a directory of manifests would change for the proxies of a running server."""

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.client import ask
from cli.errors import Status
from cli.options import AsJson, State
from cli.printing.answers import print_json

if TYPE_CHECKING:
    from cli.offline.changes import Change, Changed, Comparison
    from cli.offline.wanted import Wanted
    from xds.protocol.snapshot import Snapshot

    How = dict[Change, list[str]]


def diff(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Directory of manifests.")],
    state: State,
    names: Annotated[bool, typer.Option("--names", help="Names of resources only, not how.")] = False,
    as_json: AsJson = False,
) -> None:
    """Say which proxies a directory would change, which resources of theirs, and how. Nothing is applied.

    Secrets are not compared. Status: 0 if nothing would change, 1 if something would, 2 if it cannot be told.
    """
    from cli.offline.changes import compare

    published = _ask(state, "/debug/published")
    wanted = _wanted(directory, _ask(state, "/debug/config"), published["admitted"])
    served = {str(proxy): each["resources"] for each in published["snapshots"] for proxy in each["proxies"]}
    before = {proxy: resources for proxy, resources in served.items() if proxy not in wanted.kept}
    found = compare(before, _versions(wanted.snapshots))
    how = [{} if names else _how(state, each, wanted.snapshots[each.proxies[0]]) for each in found.changed]
    if as_json:
        print_json(_document(found, wanted, how))
    else:
        sys.stdout.write(_summary(found, wanted.kept))
        for each, lines in zip(found.changed, how, strict=True):
            sys.stdout.write(_changed(each))
            if parts := [line for part in lines.values() for line in part]:
                sys.stdout.write("\n".join(["", *parts, ""]))
    if found:
        raise typer.Exit(Status.NO)


def _document(found: "Comparison", wanted: "Wanted", how: list["How"]) -> dict[str, object]:
    """Return a comparison for programs; `diff` are the lines of a unified difference, empty if none."""
    return {
        "changed": [
            {
                "proxies": each.proxies,
                "resources": [
                    {
                        "change": change.kind.name.lower(),
                        "type": change.type,
                        "name": change.name,
                        "diff": lines.get(change, []),
                    }
                    for change in each.changes
                ],
            }
            for each, lines in zip(found.changed, how, strict=True)
        ],
        "unchanged": found.unchanged,
        "new": found.new,
        "gone": found.gone,
        "kept": dict(sorted(wanted.kept.items())),
        "unreadable": wanted.errors,
        "contradictions": wanted.between,
    }


def _wanted(directory: Path, config: Mapping[str, Any], admitted: Iterable[str]) -> "Wanted":
    from cli.offline.wanted import wanted

    found = wanted(directory, config, admitted)
    if found.errors:
        sys.stderr.write(
            f"meshwright: {_counted(found.errors, 'error')} in {directory} (see meshwright lint): "
            "what cannot be read is left out here, and the server would keep its last good form\n"
        )
    if found.between:
        said = f"{_counted(found.between, 'error')} between objects of {directory} (see meshwright lint)"
        sys.stderr.write(f"meshwright: {said}: what is named there would not be in force\n")
    return found


def _counted(number: int, one: str, many: str = "") -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"


def _versions(wanted: Mapping[str, "Snapshot"]) -> dict[str, Any]:
    from admin.pages.published import versions

    shared = {id(snapshot): versions(snapshot) for snapshot in wanted.values()}
    return {proxy: shared[id(snapshot)] for proxy, snapshot in wanted.items()}


def _summary(found: "Comparison", kept: Mapping[str, str]) -> str:
    changed = sum(len(each.proxies) for each in found.changed)
    lines = [f"{_counted(changed, 'proxy', 'proxies')} would change, {found.unchanged} would not"]
    lines.extend(f"new: {proxy}" for proxy in found.new)
    lines.extend(f"not known any more (it keeps what it has): {proxy}" for proxy in found.gone)
    lines.extend(f"keeps what it has: {proxy}: {kept[proxy]}" for proxy in sorted(kept))
    return "\n".join(lines) + "\n"


def _changed(each: "Changed") -> str:
    lines = ["", ", ".join(each.proxies)]
    lines.extend(f"  {change.kind} {change.type} {change.name}" for change in each.changes)
    return "\n".join(lines) + "\n"


def _how(state: Path, each: "Changed", wanted: "Snapshot") -> "How":
    """Return unified differences of the resources that change, as YAML, line by line."""
    import difflib

    from admin.pages.decoding import decoded
    from cli.offline.changes import Kind

    served = _ask(state, "/debug/proxy", {"proxy": each.proxies[0]})["configuration"]
    coming: Any = decoded(wanted)
    parts: How = {}
    for change in each.changes:
        if change.kind is Kind.CHANGED:
            old, new = (_yaml(side[change.type][change.name]["resource"]) for side in (served, coming))
            label = f"{change.type} {change.name}"
            parts[change] = list(difflib.unified_diff(old, new, f"served {label}", label, lineterm=""))
    return parts


def _yaml(value: object) -> list[str]:
    import yaml

    return yaml.safe_dump(value, sort_keys=True, width=100).splitlines()


def _ask(state: Path, path: str, query: dict[str, str] | None = None) -> dict[str, Any]:
    found = ask(state, "GET", path, query)
    return found if isinstance(found, dict) else {}
