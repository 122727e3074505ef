"""`meshwright lint`: everything that the server would say of manifests, without a server."""

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
            metavar="DIR|FILE|-", help="Manifests: a directory, a file, standard input.", show_default=False
        ),
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Fail for warnings too.")] = False,
    as_json: AsJson = False,
    codes: Annotated[bool, typer.Option("--codes", help="Print what each code means.")] = False,
    kubernetes: Kubernetes = False,
    kubeconfig: Kubeconfig = None,
    context: Context = "",
    namespaces: Namespaces = "",
    selector: Selector = "",
    control_plane: ControlPlane = "",
) -> None:
    """Say what is wrong with manifests; docs/codes.md explains the codes. No server is asked.

    A file is taken for the whole mesh: what it names in others is missing. With --kubernetes it is what is
    applied to a cluster, and only what that brings is said; without a file, all that is wrong in the cluster.
    Status: 0 without errors, 1 with errors (with --strict also for warnings), 2 if it cannot be read.
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
        found, standing = cluster.problems, cluster.standing
    else:
        found, standing = _problems(where), 0
    if as_json:
        from meshwright.admin.pages.debug import problem

        print_json([problem(each) for each in found])
    else:
        sys.stdout.write(text(found, standing))
    failing = {"error", "warning"} if strict else {"error"}
    if any(each.severity.value in failing for each in found):
        raise typer.Exit(Status.NO)


def _problems(where: Path | None) -> "Problems":
    from meshwright.cli.offline.mesh import held_some, seen

    if where is None:
        raise CommandFailed(
            "give a directory or a file of manifests, - for standard input, --kubernetes, or --codes"
        )
    return seen(held_some(where)).problems


def text(found: "Sequence[Problem]", standing: int = 0) -> str:
    """Return one line for each problem, how many there are of each severity, and how many stand besides."""
    counts = Counter(each.severity.value for each in found)
    summary = ", ".join(f"{counts[name]} {name}{'' if counts[name] == 1 else 's'}" for name in sorted(counts))
    lines = [f"{each.severity.value}: {each}" for each in found]
    besides = f"; {standing} more in the cluster as it is" if standing else ""
    return joined((*lines, f"{summary or 'nothing to say'}{besides}"))
