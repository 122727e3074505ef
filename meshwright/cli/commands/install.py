"""`meshwright install`: the control plane's manifests, as Helm would make them of the chart."""

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
        bool, typer.Option("--print", help="Print the manifests: nothing else is done.")
    ] = False,
    values: Annotated[
        list[Path] | None,
        typer.Option("--values", "-f", metavar="FILE", help="Values of the chart, in YAML."),
    ] = None,
    told: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="One of them: image.tag=1.2.3, tolerations[0].key=a."
        ),
    ] = None,
    told_text: Annotated[
        list[str] | None,
        typer.Option("--set-string", metavar="NAME=VALUE", help="The same; values are text."),
    ] = None,
    told_json: Annotated[
        list[str] | None, typer.Option("--set-json", metavar="NAME=JSON", help="The same; values are JSON.")
    ] = None,
    namespace: Annotated[
        str, typer.Option("--namespace", "-n", help="The control plane's own.")
    ] = "meshwright-system",
    as_json: AsJson = False,
) -> None:
    """Print what installs the control plane, for `kubectl apply`: what `helm template` makes of the chart.

    Before that stands its namespace, which Helm makes if it is told to.
    Status: 0, or 2 if the values are wrong.
    """
    import yaml

    from meshwright.cli.offline.chart import faults
    from meshwright.cli.offline.release import manifests

    if not printing:
        raise CommandFailed(
            "nothing is installed by itself: `meshwright install --print | kubectl apply -f -`"
        )
    if not is_dns_label(namespace):
        raise CommandFailed(
            f"--namespace is {namespace[:200]!r}: must be 1 to 63 of a-z, 0-9 and -, as a label"
        )
    found = manifests(namespace, values or (), told or (), told_text or (), told_json or ())
    items = [yaml.safe_load(each) for each in found]
    if lines := faults(items, namespace):
        raise CommandFailed(*lines)
    if as_json:
        print_json({"apiVersion": "v1", "kind": "List", "items": items})
    else:
        print_text("".join(f"---\n{each}" for each in found))
