"""`meshwright migrate`: report and rewrite objects of another mesh, as far as this can be automated."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from meshwright.cli.errors import CommandFailed, Status
from meshwright.cli.options import AsJson, Context, ControlPlane, Kubeconfig
from meshwright.cli.printing.lines import print_lines, say
from meshwright.cli.printing.responses import print_json

if TYPE_CHECKING:
    from meshwright.cli.migrating.migration import MigrationResult

migrate = typer.Typer(name="migrate", no_args_is_help=True, help="Migrate from another service mesh.")


@migrate.callback()
def about() -> None:
    """Migrate from another service mesh."""


@migrate.command("osm")
def osm(
    kubernetes: Annotated[
        bool, typer.Option("--kubernetes", help="Read Open Service Mesh's objects from a cluster.")
    ] = False,
    file: Annotated[
        Path | None,
        typer.Option(
            "--file",
            "-f",
            metavar="FILE|DIR",
            help="Read Open Service Mesh's objects from a file or a directory of manifests.",
        ),
    ] = None,
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

    if kubernetes == (file is not None):
        raise CommandFailed(
            "no objects to migrate, or two sources: give either --kubernetes, or --file with a file or "
            "directory of manifests"
        )
    documents = from_files(file) if file is not None else from_cluster(kubeconfig, context)
    try:
        drivers = DriverRegistry.discover().drivers
    except DriverError as error:
        raise CommandFailed(error) from error
    found = moved(documents, drivers, control_plane or HOME, mesh_name, whole=kubernetes)
    if out is not None:
        _write(out, found)
    _print(found, out, as_json=as_json)
    if lost(found.findings):
        raise typer.Exit(Status.NO)


def _print(found: "MigrationResult", out: Path | None, *, as_json: bool) -> None:
    from meshwright.cli.printing.table import columns, console, with_step

    if as_json:
        told = [asdict(each) for each in found.findings]
        commands = [each.command for each in found.labels]
        print_json(
            {
                "findings": told,
                "manifests": [*found.manifests],
                "commands": commands,
                "values": found.values,
            }
        )
        return
    made = columns("OBJECT", "FIELD", "HERE", "FOUND")
    for each in found.findings:
        said = f"{each.said}{f' ({each.code})' if each.code else ''}"
        made.add_row(each.what, each.field, each.standing.value, with_step(said, each.do))
    console().print(made)
    if out is not None:
        print_lines("", *_commands(found, out))


def _commands(found: "MigrationResult", out: Path) -> list[str]:
    """Return the commands that install Meshwright, apply the whole manifests, and label Namespaces."""
    commands = [f"meshwright install --print --values {out / 'values.yaml'} | kubectl apply -f -"]
    commands += [f"kubectl apply --server-side -f {out / 'manifests'}"] if found.manifests else []
    return commands + [each.command for each in found.labels]


def _write(out: Path, found: "MigrationResult") -> None:
    """Write one file for each manifest, and the chart's values; raise CommandFailed."""
    from meshwright.cli.printing import files
    from meshwright.providers.text.yaml_documents import printed

    folder = out / "manifests"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        names = [f"{each['kind'].lower()}-{each['metadata']['name']}.yaml" for each in found.manifests]
        for name, each in zip(names, found.manifests, strict=True):
            files.write(folder / name, printed([each]).encode(), 0o644)
        for other in sorted({each.name for each in folder.iterdir()}.difference(names)):
            say(
                f"{folder / other} is from an earlier run, and will be applied with the others: delete it if "
                "it is obsolete"
            )
        files.write(out / "values.yaml", printed([found.values]).encode(), 0o644)
    except OSError as error:
        raise CommandFailed(f"--out is {str(out)!r}: {error.strerror or error}") from error
