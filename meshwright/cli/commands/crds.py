"""`meshwright crds`: the kinds that a Kubernetes cluster has to know, as manifests."""

from typing import Annotated

import typer

from meshwright.cli.options import AsJson
from meshwright.cli.printing.responses import print_json
from meshwright.cli.process.standard_streams import print_text


def crds(
    kind: Annotated[
        list[str] | None, typer.Option(metavar="KIND", help="One kind, such as Workload. None: all of them.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print the CustomResourceDefinitions of SMI's kinds, MeshConfig and Workload, for `kubectl apply`.

    Status: 0, or 2 if there is no such kind.
    """
    from meshwright.cli.offline import reference
    from meshwright.providers.text.yaml_documents import printed

    found = reference.definitions(kind or ())
    if as_json:
        print_json({"apiVersion": "v1", "kind": "List", "items": found})
    else:
        print_text(printed(found))
