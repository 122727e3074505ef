"""`meshwright webhook`: what a cluster is to be told of the server's webhooks, as manifests."""

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
        str, typer.Option(metavar="NAMESPACE/SERVICE|URL", help="Where API servers reach the webhook.")
    ],
    ca: Annotated[Path, typer.Option(help="The mesh's CA, such as STATE/ca/ca.pem.")],
    namespaces: Annotated[str, typer.Option(help="Those of the mesh, with commas; none: all.")] = "",
    namespace_selector: Annotated[str, typer.Option(help="Labels of the mesh's namespaces.")] = "",
    injection: Annotated[bool, typer.Option("--injection", help="And what has pods injected.")] = False,
    mesh_name: Annotated[str, typer.Option(help="Of namespaces monitored by this mesh alone.")] = "",
    revision: Annotated[str, typer.Option(help="Of several control planes, this one.")] = "",
    as_json: AsJson = False,
) -> None:
    """Print the ValidatingWebhookConfiguration, for who does not let the server keep it.

    With --injection, a MutatingWebhookConfiguration besides.

    Status: 0, or 2 if what is told is wrong, or the file cannot be read.
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
        named = [each.strip() for each in namespaces.split(",") if each.strip()]
        scope = Scope.of(named, namespace_selector)
    except ValueError as error:
        raise CommandFailed(str(error)) from error
    trusted, here = roots(ca), home(os.environ)
    found = [configuration(place, trusted, scope.expressions(), here, revision)]
    if injection:
        found.append(pods(place.client_config(PATH), trusted, here, revision=revision, mesh=mesh_name))
    if as_json:
        print_json(found if injection else found[0])
    else:
        print_text(printed(found))


def roots(path: Path) -> bytes:
    """Return the roots in a file (PEM), and nothing else of it; raise CommandFailed for what is none."""
    from certs.keys.pem import as_pem, certificates_in

    try:
        content = path.read_bytes()
    except OSError as error:
        raise CommandFailed(f"--ca is {str(path)!r}: {error.strerror or error}") from error
    try:
        found = [] if b"PRIVATE KEY" in content else certificates_in(content)
    except ValueError:
        found = []
    if not found:
        raise CommandFailed(f"--ca is {str(path)!r}: must hold certificates in PEM, and no key")
    return as_pem(found)
