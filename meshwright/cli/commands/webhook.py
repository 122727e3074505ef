"""`meshwright webhook`: the webhook configurations for a cluster, as manifests."""

import os
from pathlib import Path
from typing import Annotated

import typer

from meshwright.cli.errors import CommandFailed
from meshwright.cli.options import AsJson
from meshwright.cli.printing.responses import print_json
from meshwright.cli.process.standard_streams import print_text


def webhook(
    at: Annotated[
        str,
        typer.Option(metavar="NAMESPACE/SERVICE|URL", help="Address at which API servers reach the webhook."),
    ],
    ca: Annotated[
        Path,
        typer.Option(
            help="File with the mesh's root certificates, for example /var/lib/meshwright/ca/ca.pem."
        ),
    ],
    namespaces: Annotated[
        str, typer.Option(help="Namespaces of the mesh, separated by commas.", show_default="all")
    ] = "",
    namespace_selector: Annotated[
        str, typer.Option(help="Label selector for the namespaces of the mesh.", show_default="all")
    ] = "",
    injection: Annotated[
        bool,
        typer.Option(
            "--injection", help="Also print the MutatingWebhookConfiguration for sidecar injection."
        ),
    ] = False,
    mesh_name: Annotated[
        str,
        typer.Option(
            help="Name of the mesh in the label openservicemesh.io/monitored-by, for injection.",
            show_default="any name",
        ),
    ] = "",
    revision: Annotated[
        str,
        typer.Option(
            help="Revision of this control plane, if the cluster has several.",
            show_default="the default control plane",
        ),
    ] = "",
    as_json: AsJson = False,
) -> None:
    r"""Print the webhook configuration, if the server may not create it.

    Set webhook_register to no for the server, and apply the output yourself:

      meshwright webhook --at meshwright-system/meshwright-webhook \
          --ca ca.pem | kubectl apply -f -

    Exit status: 0, or 2 if an option is wrong or the CA file cannot be read.
    """
    from meshwright.controller.kubernetes.home import home
    from meshwright.kubernetes.admission.configuration import configuration
    from meshwright.kubernetes.admission.place import Place
    from meshwright.kubernetes.injection.webhook.registration import PATH
    from meshwright.kubernetes.injection.webhook.registration import configuration as pods
    from meshwright.providers.kubernetes.scope import Scope
    from meshwright.providers.text.yaml_documents import printed

    try:
        place = Place.parse(at)
    except ValueError as error:
        raise CommandFailed(f"--at is {at[:200]!r}: {error}") from error
    try:
        named = [item.strip() for item in namespaces.split(",") if item.strip()]
        scope = Scope.from_settings(named, namespace_selector)
    except ValueError as error:
        raise CommandFailed(str(error)) from error
    trusted, here = roots(ca), home(os.environ)
    result = [configuration(place, trusted, scope.expressions(), here, revision)]
    if injection:
        result.append(pods(place.client_config(PATH), trusted, here, revision=revision, mesh=mesh_name))
    if as_json:
        print_json(result if injection else result[0])
    else:
        print_text(printed(result))


def roots(path: Path) -> bytes:
    """Return the root certificates in a PEM file; raise CommandFailed for other content or a private key."""
    from meshwright.tls.pem import as_pem, certificates_in

    try:
        content = path.read_bytes()
    except OSError as error:
        raise CommandFailed(f"--ca is {str(path)!r}: {error.strerror or error}") from error
    try:
        # A file with a private key is probably the wrong file, even if it has certificates too.
        certificates = [] if b"PRIVATE KEY" in content else certificates_in(content)
    except ValueError:
        certificates = []
    if not certificates:
        raise CommandFailed(f"--ca is {str(path)!r}: must contain certificates in PEM, without a private key")
    return as_pem(certificates)
