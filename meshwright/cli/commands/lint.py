"""`meshwright lint`: problems of manifests, as the server would report them, without a server."""

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from meshwright.cli.errors import CommandFailed, Status
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
from meshwright.cli.printing.lines import joined
from meshwright.cli.printing.responses import print_json
from meshwright.cli.process.standard_streams import print_text

if TYPE_CHECKING:
    from meshwright.mesh.problems.problem import Problem, Problems


def lint(
    typed: typer.Context,
    where: Annotated[
        Path | None,
        typer.Argument(
            metavar="DIR|FILE|-",
            help="Manifests to check: a directory, a file, or - for standard input.",
            show_default=False,
        ),
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with status 1 for warnings too.")] = False,
    as_json: AsJson = False,
    codes: Annotated[bool, typer.Option("--codes", help="Print the meaning of each problem code.")] = False,
    kubernetes: Kubernetes = False,
    kubeconfig: Kubeconfig = None,
    context: Context = "",
    namespaces: Namespaces = "",
    selector: Selector = "",
    control_plane: ControlPlane = "",
) -> None:
    """Check manifests for errors, without a server.

    Use the command before you apply manifests, or in CI. For example:

      meshwright lint ./mesh
      meshwright lint --kubernetes ./change.yaml

    The manifests must be the whole mesh, because references to missing objects
    are errors. With --kubernetes, the manifests are evaluated together with the
    objects of the cluster, and only the problems that they add are printed;
    without manifests, all problems of the cluster. docs/debug/codes.md explains the
    codes.

    Exit status: 0 without errors, 1 with errors (with --strict also with
    warnings), 2 if the manifests cannot be read.
    """
    require_cluster(typed)
    if codes:
        from meshwright.cli.printing.codes import document, meanings

        if as_json:
            print_json([{"code": code, "meaning": meaning} for code, meaning in meanings()])
        else:
            print_text(document())
        return
    if kubernetes:
        from meshwright.cli.offline.cluster import brought, reached

        cluster = brought(reached(kubeconfig, context, namespaces, selector, control_plane), where)
        problems, standing = cluster.problems, cluster.standing
    else:
        problems, standing = _problems(where), 0
    if as_json:
        from meshwright.admin.pages.debug import problem

        print_json([problem(item) for item in problems])
    else:
        sys.stdout.write(text(problems, standing))
    failing = {"error", "warning"} if strict else {"error"}
    if any(item.severity.value in failing for item in problems):
        raise typer.Exit(Status.NO)


def _problems(where: Path | None) -> "Problems":
    from meshwright.cli.offline.mesh import load_nonempty_manifests, seen

    if where is None:
        raise CommandFailed(
            "manifests are required: give a directory or a file, - for standard input, --kubernetes for a "
            "cluster, or --codes for the meaning of codes"
        )
    return seen(load_nonempty_manifests(where)).problems


def text(problems: "Sequence[Problem]", standing: int = 0) -> str:
    """Return one line for each problem, and a line with their numbers by severity.

    `standing` is the number of problems that the cluster already had.
    """
    counts = Counter(problem.severity.value for problem in problems)
    summary = ", ".join(f"{counts[name]} {name}{'' if counts[name] == 1 else 's'}" for name in sorted(counts))
    lines = [f"{problem.severity.value}: {problem}" for problem in problems]
    besides = f"; {standing} more already in the cluster" if standing else ""
    return joined((*lines, f"{summary or 'no problems found'}{besides}"))
