"""`meshwright apply`, `get` and `delete`: the objects of the mesh in etcd."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from meshwright.cli.errors import CommandFailed, NegativeAnswer, Status
from meshwright.cli.options import AsJson
from meshwright.cli.printing.lines import print_lines, print_remarks
from meshwright.cli.printing.responses import print_json
from meshwright.cli.process.standard_streams import print_text

if TYPE_CHECKING:
    from meshwright.cli.objects.inputs import Input
    from meshwright.cli.objects.settings import EtcdSettings
    from meshwright.cli.objects.store import Change, ObjectStore, Outcome
    from meshwright.etcd.values import KeyValue
    from meshwright.mesh.objects import ObjectKey
    from meshwright.providers.etcd.names import ObjectNames

File = Annotated[
    Path | None,
    typer.Option("-f", "--filename", metavar="FILE|DIR|-", help="Manifests: a file, a directory, or -."),
]
Config = Annotated[
    Path | None,
    typer.Option(envvar="MESHWRIGHT_CONFIG", help="YAML file with the server's settings, for those of etcd."),
]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="A setting of etcd. Repeat for more."),
]
Mesh = Annotated[
    Path | None,
    typer.Option(help="Directory of manifests that the servers read too, for warnings about the whole mesh."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Check the change, and write nothing.")]
OneNamespace = Annotated[str, typer.Option("-n", "--namespace", help="Namespace of the objects.")]


def apply(
    filename: File = None,
    dry_run: DryRun = False,
    mesh: Mesh = None,
    config: Config = None,
    setting: Set = None,
    as_json: AsJson = False,
) -> None:
    """Write manifests into etcd, for servers with the setting etcd_objects.

    Each manifest is checked before it is written, as by the admission webhook of a
    cluster: a manifest with errors is refused, and problems of the mesh are
    warnings. Good manifests are written although others are refused. For example:

      meshwright apply -f mesh/ --set etcd_endpoints=https://10.0.0.1:2379

    The settings of etcd are those of the server (docs/operate/settings.md): from
    --set, from variables MESHWRIGHT_ETCD_..., or from the file of --config.

    Exit status: 0 if all manifests are stored, 1 if some were refused, 2 if etcd
    or the manifests cannot be used.
    """
    from meshwright.cli.objects.inputs import inputs
    from meshwright.cli.objects.store import Change, run

    given = tuple(inputs(_required(filename)))
    if not given:
        raise CommandFailed(f"{filename} lacks a manifest: it is empty, or has only comments")

    async def work(store: "ObjectStore") -> "tuple[list[tuple[Input, Outcome]], Sequence[KeyValue]]":
        # Before the first write, for the problems that the writes add.
        before = await store.all()
        return [(each, await store.apply(each, dry_run=dry_run)) for each in given], before

    settings = _settings(config, setting)
    outcomes, before = run(settings, work)
    writes = [
        (outcome.verdict.key, each.content)
        for each, outcome in outcomes
        if outcome.verdict.key is not None and outcome.change in (Change.CREATED, Change.CONFIGURED)
    ]
    added = _added(settings, before, writes, mesh)
    refused = sum(outcome.change is Change.REFUSED for _, outcome in outcomes)
    if as_json:
        objects = [_applied(each, outcome) for each, outcome in outcomes]
        print_json({"dry_run": dry_run, "objects": objects, "warnings": list(added)})
    else:
        _print_applied(outcomes, " (dry run)" if dry_run else "")
        print_remarks(*(f"Warning: {line}" for line in added))
    if refused:
        print_remarks(f"meshwright: {refused} of {len(outcomes)} manifests refused")
        raise typer.Exit(Status.NO)


def _print_applied(outcomes: "Sequence[tuple[Input, Outcome]]", ending: str) -> None:
    from meshwright.cli.objects.kinds import resource_of

    for each, outcome in outcomes:
        verdict = outcome.verdict
        print_remarks(*(f"Warning: {each.place}: {warning}" for warning in verdict.warnings))
        if verdict.refused:
            print_remarks(*f"{each.place}: {verdict.refused}".split("\n"))
        elif verdict.key is not None:
            print_lines(f"{resource_of(verdict.key)} {outcome.change}{ending}")


def _applied(given: "Input", outcome: "Outcome") -> dict[str, object]:
    verdict = outcome.verdict
    return {
        "object": None if verdict.key is None else str(verdict.key),
        "origin": str(given.place),
        "change": outcome.change.value,
        "refused": verdict.refused,
        "warnings": list(verdict.warnings),
    }


def get(
    kind: Annotated[str, typer.Argument(help="Kind, for example TrafficSplit or services; or all.")],
    name: Annotated[str | None, typer.Argument(help="Name of one object.", show_default="all")] = None,
    namespace: OneNamespace = "default",
    everywhere: Annotated[bool, typer.Option("-A", "--all-namespaces", help="In all namespaces.")] = False,
    output: Annotated[
        str, typer.Option("-o", "--output", help="Form of the output: table, yaml, json or name.")
    ] = "table",
    config: Config = None,
    setting: Set = None,
    as_json: AsJson = False,
) -> None:
    """Print objects of the mesh in etcd.

    For example:

      meshwright get trafficsplits -n shop
      meshwright get TrafficSplit web -n shop -o yaml
      meshwright get all -A

    Exit status: 0, 1 if there is no such object, 2 if etcd cannot be used.
    """
    from meshwright.cli.objects import printing
    from meshwright.cli.objects.kinds import kind_typed
    from meshwright.cli.objects.store import run
    from meshwright.cli.printing.table import columns, console

    if output not in list(printing.Output):
        raise CommandFailed(f"--output is {output!r}: must be one of {', '.join(printing.Output)}")
    of_kind = None if kind == "all" else kind_typed(kind)
    settings = _settings(config, setting)
    names = _names(settings)
    items = run(settings, lambda store: store.all())
    found = printing.selected(names, items, of_kind, None if everywhere else namespace, name)
    if name is not None and not found:
        raise NegativeAnswer(f"{kind} {name} not found in namespace {namespace}")
    match printing.Output.JSON if as_json else printing.Output(output):
        case printing.Output.YAML:
            print_text(printing.as_yaml(found))
        case printing.Output.JSON:
            print_text(printing.as_json(found, alone=name is not None and len(found) == 1))
        case printing.Output.NAME:
            print_text(printing.as_names(found))
        case printing.Output.TABLE:
            table = columns("NAMESPACE", "OBJECT", "REVISION", "STATE")
            for row in printing.rows(names, found):
                table.add_row(*row)
            console().print(table)


def delete(
    kind: Annotated[str | None, typer.Argument(help="Kind, for example TrafficSplit.")] = None,
    name: Annotated[str | None, typer.Argument(help="Name of the object.")] = None,
    namespace: OneNamespace = "default",
    filename: File = None,
    dry_run: DryRun = False,
    mesh: Mesh = None,
    config: Config = None,
    setting: Set = None,
    as_json: AsJson = False,
) -> None:
    """Delete objects of the mesh from etcd: one by its name, or all in manifests.

    Problems that the mesh has without the objects are warnings. For example:

      meshwright delete TrafficSplit web -n shop
      meshwright delete -f mesh/old.yaml

    Exit status: 0, 1 if an object was not found, 2 if etcd or the manifests
    cannot be used.
    """
    from meshwright.cli.objects.kinds import resource_of
    from meshwright.cli.objects.store import Change, run

    keys = _keys(kind, name, namespace, filename)

    async def work(store: "ObjectStore") -> "tuple[list[tuple[ObjectKey, Change]], Sequence[KeyValue]]":
        before = await store.all()
        return [(key, await store.delete(key, dry_run=dry_run)) for key in keys], before

    settings = _settings(config, setting)
    changes, before = run(settings, work)
    gone = [(key, None) for key, change in changes if change is Change.DELETED]
    added = _added(settings, before, gone, mesh)
    if as_json:
        objects = [{"object": str(key), "change": change.value} for key, change in changes]
        print_json({"dry_run": dry_run, "objects": objects, "warnings": list(added)})
    else:
        ending = " (dry run)" if dry_run else ""
        for key, change in changes:
            if change is Change.DELETED:
                print_lines(f"{resource_of(key)} {change}{ending}")
            else:
                print_remarks(f"meshwright: {key} not found")
        print_remarks(*(f"Warning: {line}" for line in added))
    if any(change is Change.MISSING for _, change in changes):
        raise typer.Exit(Status.NO)


def _keys(
    kind: str | None, name: str | None, namespace: str, filename: Path | None
) -> "tuple[ObjectKey, ...]":
    from meshwright.cli.objects.inputs import inputs
    from meshwright.cli.objects.kinds import kind_typed
    from meshwright.mesh.names import Namespace
    from meshwright.mesh.objects import ObjectKey
    from meshwright.specs.manifest import CLUSTER_WIDE
    from meshwright.specs.reader import key_meant

    if filename is not None and kind is None:
        found = [(each.place, key_meant(each.value)) for each in inputs(filename)]
        if unnamed := [place for place, key in found if key is None]:
            raise CommandFailed(f"{unnamed[0]} does not name an object of the mesh")
        return tuple(dict.fromkeys(key for _, key in found if key is not None))
    if filename is not None or kind is None or name is None:
        raise CommandFailed("give a kind and a name, for example `delete TrafficSplit web`, or -f FILE")
    of = kind_typed(kind)
    return (ObjectKey(of, Namespace("" if of in CLUSTER_WIDE else namespace), name),)


def _required(filename: Path | None) -> Path:
    if filename is None:
        raise CommandFailed(
            "manifests are required: give -f with a file, a directory, or - for standard input"
        )
    return filename


def _settings(config: Path | None, setting: Sequence[str] | None) -> "EtcdSettings":
    # gRPC's own lines would repeat the errors of the command.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    import logging

    import structlog

    from meshwright.cli.commands.serve import named
    from meshwright.cli.objects.settings import etcd_settings

    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    return etcd_settings({"config": config, **named(setting or ())})


def _names(settings: "EtcdSettings") -> "ObjectNames":
    from meshwright.providers.etcd.names import ObjectNames

    return ObjectNames(settings.trust_domain)


def _added(
    settings: "EtcdSettings",
    before: "Sequence[KeyValue]",
    writes: "Sequence[tuple[ObjectKey, bytes | None]]",
    mesh: Path | None,
) -> tuple[str, ...]:
    """Return a line for each problem that the writes add to the mesh."""
    from meshwright.cli.objects.effects import added_problems
    from meshwright.cli.objects.store import replaced

    names = _names(settings)
    return added_problems(names, before, replaced(before, names, writes), mesh)
