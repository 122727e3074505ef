"""`meshwright diff`: changes of the proxies' configuration by a directory of manifests."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from meshwright.cli.errors import CommandFailed, Status, understood
from meshwright.cli.options import (
    AsJson,
    Context,
    ControlPlane,
    Kubeconfig,
    Kubernetes,
    Namespaces,
    Selector,
    require_cluster,
)
from meshwright.cli.printing.lines import joined, print_lines, print_remarks
from meshwright.cli.printing.responses import print_json, with_remarks
from meshwright.cli.socket.client import api, proxy_path

if TYPE_CHECKING:
    from meshwright.cli.offline.selection import SelectedSnapshots
    from meshwright.controller.kubernetes.cluster import ClusterAccess
    from meshwright.delivery.snapshots.changes import Change, ChangedProxies, Comparison
    from xds.protocol.resources.snapshot import Snapshot

    How = dict[Change, list[str]]


def diff(
    typed: typer.Context,
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Directory of manifests to compare.")],
    state: Annotated[
        Path | None,
        typer.Option(
            envvar="MESHWRIGHT_STATE",
            help="State directory of the running server, for example /var/lib/meshwright.",
            show_default=False,
        ),
    ] = None,
    names: Annotated[
        bool,
        typer.Option("--names", help="Print only the names of resources that change, not the differences."),
    ] = False,
    kubernetes: Kubernetes = False,
    kubeconfig: Kubeconfig = None,
    context: Context = "",
    namespaces: Namespaces = "",
    selector: Selector = "",
    control_plane: ControlPlane = "",
    as_json: AsJson = False,
) -> None:
    """Show how a directory of manifests would change the proxies' configuration.

    Use the command before you apply manifests. It changes nothing. For example,
    compare a directory with the configuration that a running server publishes:

      meshwright diff --state /var/lib/meshwright ./mesh

    With --kubernetes, the command compares the cluster as it is with the cluster
    after `kubectl apply` of the directory, and needs no server. Secrets are not
    compared.

    Exit status: 0 if no proxy would change, 1 if proxies would change, 2 if the
    comparison failed.
    """
    from meshwright.delivery.snapshots.changes import compare

    require_cluster(typed)
    if kubernetes:
        from meshwright.cli.offline.cluster import reached

        asked = reached(kubeconfig, context, namespaces, selector, control_plane)
        served, wanted = _applied(directory, asked)
    elif state is not None:
        served, wanted = _replaced(directory, state)
    else:
        raise CommandFailed(
            "--state or --kubernetes is missing: compare the directory with a running server "
            "(--state DIR) or a cluster (--kubernetes)"
        )
    _print_errors(directory, wanted)
    # Proxies whose driver cannot be chosen keep their configuration, so they are not compared.
    before = {proxy: version for proxy, version in served.versions.items() if proxy not in wanted.kept}
    comparison = compare(before, _versions(wanted.snapshots))
    # Proxies with the same changes are compared once, by the first of them.
    how = [
        {} if names else _how(served, changed_proxies, wanted.snapshots[changed_proxies.proxies[0]])
        for changed_proxies in comparison.changed
    ]
    if as_json:
        print_json(_document(comparison, wanted, how))
    else:
        sys.stdout.write(_summary(comparison, wanted.kept))
        for changed_proxies, lines in zip(comparison.changed, how, strict=True):
            sys.stdout.write(_changed(changed_proxies))
            if parts := [line for part in lines.values() for line in part]:
                print_lines("", *parts)
    if comparison:
        raise typer.Exit(Status.NO)


def _document(comparison: "Comparison", wanted: "SelectedSnapshots", how: list["How"]) -> dict[str, object]:
    """Return a comparison as JSON; `diff` has the lines of a unified diff, or is empty."""
    return {
        "changed": [
            {
                "proxies": changed_proxies.proxies,
                "resources": [
                    {
                        "change": change.kind.name.lower(),
                        "type": change.type,
                        "name": change.name,
                        "diff": lines.get(change, []),
                    }
                    for change in changed_proxies.changes
                ],
            }
            for changed_proxies, lines in zip(comparison.changed, how, strict=True)
        ],
        "unchanged": comparison.unchanged,
        "new": comparison.new,
        "gone": comparison.gone,
        "kept": dict(sorted(wanted.kept.items())),
        "unreadable": wanted.errors,
        "contradictions": wanted.between,
    }


@dataclass(frozen=True, slots=True)
class _ServedConfig:
    """The proxies' present configuration.

    `versions` are by type and name for each proxy, and `resources` returns the resources of one proxy.
    """

    versions: Mapping[str, Any]
    resources: Callable[[str], Mapping[str, Any]]


def _replaced(directory: Path, state: Path) -> "tuple[_ServedConfig, SelectedSnapshots]":
    """Return the server's present configuration, and the one with this directory instead of the mesh's."""
    from meshwright.cli.offline.selection import wanted

    published: Mapping[str, Any] = with_remarks(api(state, "/published"))

    def resources(proxy: str) -> Mapping[str, Any]:
        with understood():
            result: Any = api(state, f"{proxy_path(proxy)}/configuration")["configuration"]
        return result or {}

    with understood():
        snapshots, admitted, withdrawn = (published[item] for item in ("snapshots", "admitted", "withdrawn"))
        versions = {
            str(proxy): snapshot["resources"] for snapshot in snapshots for proxy in snapshot["proxies"]
        }
    return _ServedConfig(versions, resources), wanted(directory, api(state, "/config"), admitted, withdrawn)


def _applied(directory: Path, access: "ClusterAccess") -> "tuple[_ServedConfig, SelectedSnapshots]":
    """Return the configuration of a cluster as it is, and with the directory applied."""
    from meshwright.admin.pages.proxies.decoding import decoded
    from meshwright.cli.offline.cluster import before_and_after, new
    from meshwright.cli.offline.selection import served

    there, after = before_and_after(access, directory)
    before = served(there.view, ())

    def resources(proxy: str) -> Mapping[str, Any]:
        result: Mapping[str, Any] = decoded(before.snapshots[proxy])
        return result

    return _ServedConfig(_versions(before.snapshots), resources), served(after.view, new(there, after))


def _print_errors(directory: Path, result: "SelectedSnapshots") -> None:
    if result.errors:
        print_remarks(
            f"meshwright: {_counted(result.errors, 'error')} in {directory} (see meshwright lint): "
            "this comparison leaves out objects with errors, but a server would keep their last "
            "valid version"
        )
    if result.between:
        text = f"{_counted(result.between, 'error')} between objects of {directory} (see meshwright lint)"
        print_remarks(f"meshwright: {text}: the named parts would not be in force")


def _counted(number: int, one: str, many: str = "") -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"


def _versions(wanted: Mapping[str, "Snapshot"]) -> dict[str, Any]:
    from meshwright.admin.pages.mesh.published_resources import versions

    # Proxies of a group share one snapshot object, so its versions are computed once.
    shared = {id(snapshot): versions(snapshot) for snapshot in wanted.values()}
    return {proxy: shared[id(snapshot)] for proxy, snapshot in wanted.items()}


def _summary(comparison: "Comparison", kept: Mapping[str, str]) -> str:
    changed = sum(len(changed_proxies.proxies) for changed_proxies in comparison.changed)
    lines = [f"{_counted(changed, 'proxy', 'proxies')} would change, {comparison.unchanged} would not"]
    lines.extend(f"new: {proxy}" for proxy in comparison.new)
    lines.extend(f"not known any more (it keeps its configuration): {proxy}" for proxy in comparison.gone)
    lines.extend(f"keeps its configuration: {proxy}: {kept[proxy]}" for proxy in sorted(kept))
    return joined(lines)


def _changed(changed_proxies: "ChangedProxies") -> str:
    lines = ["", ", ".join(changed_proxies.proxies)]
    lines.extend(f"  {change.kind} {change.type} {change.name}" for change in changed_proxies.changes)
    return joined(lines)


def _how(served: _ServedConfig, changed_proxies: "ChangedProxies", wanted: "Snapshot") -> "How":
    """Return unified diffs of the changed xDS resources as YAML, in lines."""
    import difflib

    from meshwright.admin.pages.proxies.decoding import decoded
    from meshwright.delivery.snapshots.changes import Kind

    there = served.resources(changed_proxies.proxies[0])
    coming: Any = decoded(wanted)
    parts: How = {}
    for change in changed_proxies.changes:
        if change.kind is Kind.CHANGED:
            old, new = (_yaml(side[change.type][change.name]["resource"]) for side in (there, coming))
            label = f"{change.type} {change.name}"
            parts[change] = list(difflib.unified_diff(old, new, f"served {label}", label, lineterm=""))
    return parts


def _yaml(value: object) -> list[str]:
    import yaml

    return yaml.safe_dump(value, sort_keys=True, width=100).splitlines()
