"""`meshwright install`: the control plane's manifests, as Helm renders them from the chart."""

from pathlib import Path
from typing import Annotated

import typer

from meshwright.cli.errors import CommandFailed
from meshwright.cli.options import AsJson
from meshwright.cli.printing.responses import print_json
from meshwright.cli.process.standard_streams import print_text
from meshwright.mesh.names import is_dns_label


def install(
    printing: Annotated[
        bool,
        typer.Option(
            "--print", help="Print the manifests. Required, because the command never changes a cluster."
        ),
    ] = False,
    values: Annotated[
        list[Path] | None,
        typer.Option(
            "--values",
            "-f",
            metavar="FILE",
            help="YAML file with values of the chart. Repeat for more files; later files "
            "override earlier ones.",
        ),
    ] = None,
    told: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="Value of the chart, for example image.tag=1.2.3 or tolerations[0].key=a. "
            "Overrides --values.",
        ),
    ] = None,
    told_text: Annotated[
        list[str] | None,
        typer.Option(
            "--set-string",
            metavar="NAME=VALUE",
            help="Like --set, but the value is always text, for example image.tag=1.",
        ),
    ] = None,
    told_json: Annotated[
        list[str] | None,
        typer.Option("--set-json", metavar="NAME=JSON", help="Like --set, but the value is JSON."),
    ] = None,
    namespace: Annotated[
        str, typer.Option("--namespace", "-n", help="Namespace of the control plane.")
    ] = "meshwright-system",
    as_json: AsJson = False,
) -> None:
    """Print the manifests that install the control plane in a Kubernetes cluster.

    The output is the same as `helm template` of the chart, plus the Namespace.
    For example:

      meshwright install --print | kubectl apply -f -

    Exit status: 0, or 2 if the values are wrong.
    """
    from meshwright.chart.template.functions import from_yaml
    from meshwright.cli.offline.chart import faults
    from meshwright.cli.offline.release import manifests

    if not printing:
        raise CommandFailed(
            "this command only prints manifests: to install, run `meshwright "
            "install --print | kubectl apply -f -`"
        )
    if not is_dns_label(namespace):
        raise CommandFailed(
            f"--namespace is {namespace[:200]!r}: must be a DNS label of 1 to 63 characters a-z, 0-9 and -, "
            "for example meshwright-system"
        )
    result = manifests(namespace, values or (), told or (), told_text or (), told_json or ())
    items = [from_yaml(item) for item in result]
    if lines := faults(items, namespace):
        raise CommandFailed(*lines)
    if as_json:
        print_json({"apiVersion": "v1", "kind": "List", "items": items})
    else:
        print_text("".join(f"---\n{item}" for item in result))
