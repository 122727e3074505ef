"""`meshwright migrate`: report and rewrite objects of another mesh, as far as this can be automated."""

from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from meshwright.cli.errors import CommandFailed, Status
from meshwright.cli.options import AsJson, Context, ControlPlane, Kubeconfig
from meshwright.cli.printing.lines import print_lines, print_remarks
from meshwright.cli.printing.responses import print_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from meshwright.cli.migrating.findings import Document, Finding
    from meshwright.cli.migrating.migration import MigrationResult

migrate = typer.Typer(name="migrate", no_args_is_help=True, help="Migrate from another service mesh.")

FromCluster = Annotated[bool, typer.Option("--kubernetes", help="Read the mesh's objects from a cluster.")]
FromFiles = Annotated[
    Path | None,
    typer.Option(
        "--file",
        "-f",
        metavar="FILE|DIR",
        help="Read the mesh's objects from a file or a directory of manifests.",
    ),
]


@migrate.callback()
def about() -> None:
    """Migrate from another service mesh."""


@migrate.command("osm")
def osm(
    kubernetes: FromCluster = False,
    file: FromFiles = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Directory for the rewritten manifests and the chart's values."),
    ] = None,
    mesh_name: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Name of the Open Service Mesh mesh.",
            show_default="from the labels of its namespaces",
        ),
    ] = "",
    kubeconfig: Kubeconfig = None,
    context: Context = "",
    control_plane: ControlPlane = "",
    as_json: AsJson = False,
) -> None:
    """Report how each object of Open Service Mesh works here, and rewrite manifests.

    The command changes nothing in the cluster. For example:

      meshwright migrate osm --kubernetes --out ./migrated

    With --out, the command also prints the commands that install Meshwright and
    apply the manifests.

    Exit status: 0 if everything keeps working; 1 if an object or field is
    refused, not enforced or not used here; 2 if something cannot be read.
    """
    from meshwright.cli.migrating.inputs import from_cluster, from_files
    from meshwright.cli.migrating.migration import lost, moved
    from meshwright.controller.kubernetes.home import HOME
    from meshwright.sidecars.contract.errors import DriverError
    from meshwright.sidecars.registry import DriverRegistry

    _one_source(file, kubernetes=kubernetes)
    documents = from_files(file) if file is not None else from_cluster(kubeconfig, context)
    try:
        drivers = DriverRegistry.discover().drivers
    except DriverError as error:
        raise CommandFailed(error) from error
    migration_result = moved(documents, drivers, control_plane or HOME, mesh_name, whole=kubernetes)
    if out is not None:
        _write(out, migration_result)
    _print(migration_result, out, as_json=as_json)
    if lost(migration_result.findings):
        raise typer.Exit(Status.NO)


@migrate.command("smi")
def smi(
    kubernetes: FromCluster = False,
    file: FromFiles = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Directory for the manifests of the new routes.")
    ] = None,
    kubeconfig: Kubeconfig = None,
    context: Context = "",
    control_plane: ControlPlane = "",
    as_json: AsJson = False,
) -> None:
    """Write routes of the Gateway API that do what TrafficSplits do.

    Each Service with TrafficSplits gets an HTTPRoute, or a TCPRoute for a port
    without HTTP. RoutePolicies of the Service become filters of the route.
    TrafficTargets stay as they are, with the HTTPRouteGroups that they use. The
    command changes nothing in the cluster. For example:

      meshwright migrate smi --kubernetes --out ./routes

    The manifests must be the whole mesh, because a route needs the ports of the
    Services.

    Exit status: 0 if every TrafficSplit has an equivalent route, 1 if some have
    not, 2 if something cannot be read.
    """
    from meshwright.cli.migrating.findings import MigrationStatus
    from meshwright.cli.migrating.gateway_api.replaced_splits import replaced_splits
    from meshwright.cli.migrating.gateway_api.routes import refused_objects
    from meshwright.cli.offline import cluster, mesh

    _one_source(file, kubernetes=kubernetes)
    access = cluster.reached(kubeconfig, context, "", "", control_plane)
    found = cluster.together(access, None) if file is None else mesh.seen(mesh.load_nonempty_manifests(file))
    replaced = replaced_splits(found.view)
    manifests = list(replaced.manifests)
    findings = (*refused_objects(found.problems), *replaced.findings)
    if out is not None and manifests:
        _write_manifests(out, manifests)
    if as_json:
        print_json({"findings": [asdict(finding) for finding in findings], "manifests": manifests})
    else:
        _print_findings(findings)
        if out is not None and manifests:
            print_lines("", f"kubectl apply --server-side -f {out}")
    if any(finding.standing is not MigrationStatus.REWRITTEN for finding in findings):
        raise typer.Exit(Status.NO)


def _one_source(file: Path | None, *, kubernetes: bool) -> None:
    if kubernetes == (file is not None):
        raise CommandFailed(
            "exactly one source is required: give either --kubernetes, or --file with a file or directory of "
            "manifests"
        )


def _print(migration_result: "MigrationResult", out: Path | None, *, as_json: bool) -> None:
    if as_json:
        messages = [asdict(finding) for finding in migration_result.findings]
        commands = [label.command for label in migration_result.labels]
        print_json(
            {
                "findings": messages,
                "manifests": [*migration_result.manifests],
                "commands": commands,
                "values": migration_result.values,
            }
        )
        return
    _print_findings(migration_result.findings)
    if out is not None:
        print_lines("", *_commands(migration_result, out))


def _print_findings(findings: "Iterable[Finding]") -> None:
    from meshwright.cli.printing.table import columns, console, with_step

    made = columns("OBJECT", "FIELD", "HERE", "FOUND")
    for finding in findings:
        text = f"{finding.said}{f' ({finding.code})' if finding.code else ''}"
        made.add_row(finding.what, finding.field, finding.standing.value, with_step(text, finding.do))
    console().print(made)


def _commands(migration_result: "MigrationResult", out: Path) -> list[str]:
    """Return the commands that install Meshwright, apply the whole manifests, and label Namespaces."""
    commands = [f"meshwright install --print --values {out / 'values.yaml'} | kubectl apply -f -"]
    commands += [f"kubectl apply --server-side -f {out / 'manifests'}"] if migration_result.manifests else []
    return commands + [label.command for label in migration_result.labels]


def _write(out: Path, migration_result: "MigrationResult") -> None:
    """Write one file for each manifest, and the chart's values; raise CommandFailed."""
    from meshwright.cli.printing import files
    from meshwright.providers.text.yaml_documents import printed

    _write_manifests(out / "manifests", migration_result.manifests)
    try:
        files.write(out / "values.yaml", printed([migration_result.values]).encode(), 0o644)
    except OSError as error:
        raise _not_written(out, error) from error


def _write_manifests(folder: Path, manifests: "Sequence[Document]") -> None:
    """Write one file for each manifest; raise CommandFailed."""
    from meshwright.cli.printing import files
    from meshwright.providers.text.yaml_documents import printed

    try:
        folder.mkdir(parents=True, exist_ok=True)
        names = _file_names(manifests)
        for name, manifest in zip(names, manifests, strict=True):
            files.write(folder / name, printed([manifest]).encode(), 0o644)
        for other in sorted({path.name for path in folder.iterdir()}.difference(names)):
            print_remarks(
                f"{folder / other} is from an earlier run, and will be applied with the others: delete it if "
                "it is obsolete"
            )
    except OSError as error:
        raise _not_written(folder, error) from error


def _file_names(manifests: "Sequence[Document]") -> list[str]:
    """Return a file name for each manifest; where two would be one, namespace and name have a dot between."""
    names = [_file_name(manifest, "-") for manifest in manifests]
    repeated = {name for name, number in Counter(names).items() if number > 1}
    return [
        _file_name(manifest, ".") if name in repeated else name
        for name, manifest in zip(names, manifests, strict=True)
    ]


def _file_name(manifest: "Document", between: str) -> str:
    metadata = manifest["metadata"]
    return f"{manifest['kind'].lower()}-{metadata['namespace']}{between}{metadata['name']}.yaml"


def _not_written(folder: Path, error: OSError) -> CommandFailed:
    return CommandFailed(f"--out is {str(folder)!r}: {error.strerror or error}")
