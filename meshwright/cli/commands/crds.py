"""`meshwright crds`: the CustomResourceDefinitions of our kinds, as manifests."""

from typing import Annotated

import typer

from meshwright.cli.options import AsJson
from meshwright.cli.printing.responses import print_json
from meshwright.cli.process.standard_streams import print_text


def crds(
    kind: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KIND",
            help="Kind to print, for example Workload. Repeat for more.",
            show_default="all kinds",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print the CustomResourceDefinitions that a cluster needs.

    These are the kinds of SMI and Open Service Mesh, MeshConfig, Workload, and
    Record, in which several servers keep their state. For
    example, install all of them:

      meshwright crds | kubectl apply --server-side -f -

    Exit status: 0, or 2 if a kind is unknown.
    """
    from meshwright.cli.offline import reference
    from meshwright.providers.text.yaml_documents import printed

    result = reference.definitions(kind or ())
    if as_json:
        print_json({"apiVersion": "v1", "kind": "List", "items": result})
    else:
        print_text(printed(result))
