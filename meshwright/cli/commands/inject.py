"""`meshwright inject` and `meshwright uninject`: add sidecars to manifests, and remove them."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from meshwright.cli.errors import CommandFailed, NegativeAnswer, lines_of
from meshwright.cli.options import AsJson
from meshwright.cli.printing.lines import print_remarks
from meshwright.cli.printing.responses import print_json
from meshwright.cli.process.standard_streams import print_text, read_bytes

if TYPE_CHECKING:
    from meshwright.cli.by_hand.text import Piece
    from meshwright.kubernetes.injection.configuration.configuration import InjectionConfig
    from meshwright.kubernetes.injection.manifests import InjectionResult, Outcome
    from meshwright.mesh.config import MeshConfig
    from meshwright.mesh.names import Namespace
    from meshwright.mesh.objects import NamespaceObject

_NOT_ASKED: Final = False
"""Files are checked by reading them, because access(2) ignores rights from capabilities."""
_MOST_BYTES: Final = 64 * 1024 * 1024
File = Annotated[
    Path,
    typer.Option(
        "--file",
        "-f",
        metavar="FILE|-",
        readable=_NOT_ASKED,
        help="File with manifests; - for standard input.",
    ),
]
InNamespace = Annotated[
    str,
    typer.Option(
        "--namespace",
        "-n",
        metavar="NAME",
        help="Namespace to use if the argument or the manifest names none.",
    ),
]


def inject(
    file: File,
    config: Annotated[
        Path | None,
        typer.Option(
            readable=_NOT_ASKED,
            help="File with the injection configuration: policy, selectors, images, overlays.",
            show_default="the built-in defaults",
        ),
    ] = None,
    mesh: Annotated[
        Path | None,
        typer.Option(metavar="DIR|FILE", help="Manifests with the MeshConfig and the Namespaces."),
    ] = None,
    namespace: InNamespace = "default",
    image: Annotated[
        str, typer.Option(help="Image of the sidecar.", show_default="from the configuration")
    ] = "",
    init_image: Annotated[
        str, typer.Option(help="Image of the init container.", show_default="the image of the sidecar")
    ] = "",
    ca: Annotated[
        Path | None,
        typer.Option(
            help="File with the mesh's root certificates, to write into the Pods.",
            show_default="the Pods read a ConfigMap",
        ),
    ] = None,
    control_plane_namespace: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="Namespace of the control plane.", show_default="meshwright-system"
        ),
    ] = "",
    as_json: AsJson = False,
) -> None:
    r"""Print manifests with sidecars added to their Pods.

    Use the command if the cluster does not inject sidecars itself. Manifests
    without Pods are printed unchanged. For example:

      meshwright inject -f deployment.yaml --image meshwright/proxy:0.2.0 \
          | kubectl apply -f -

    Standard error lists objects that get no sidecar, with the reason. Exit
    status: 0 if the manifests are printed; 1 if a Pod needs a sidecar but cannot
    get one, and then nothing is printed; 2 if the manifests or the configuration
    cannot be read.
    """
    from meshwright.kubernetes.injection.manifests import inject as injected
    from meshwright.kubernetes.injection.manifests import namespaces_in
    from meshwright.kubernetes.injection.pod_injection import InjectionInputs
    from meshwright.sidecars.contract.errors import DriverError
    from meshwright.sidecars.registry import DriverRegistry

    pieces = pieces_of(file)
    injection_config = config_in(config)
    injection_config = replace(
        injection_config,
        image=image or injection_config.image,
        init_image=init_image or injection_config.init_image,
        control_plane_namespace=named_namespace(control_plane_namespace)
        or injection_config.control_plane_namespace,
    )
    try:
        mesh_config, others = known_mesh(mesh)
        drivers = DriverRegistry.discover().drivers
        known = InjectionInputs(injection_config, drivers, mesh_config, os.environ, _roots(ca))
        namespaces = {**others, **namespaces_in(piece.value for piece in pieces)}
    except DriverError as error:
        raise CommandFailed(error) from error
    outcomes = [injected(known, namespaces, piece.value, namespace) for piece in pieces]
    _print(pieces, outcomes, as_json=as_json)


def uninject(file: File, namespace: InNamespace = "default", as_json: AsJson = False) -> None:
    r"""Print manifests without the sidecars that `meshwright inject` added.

    For example:

      kubectl get deployment store -o yaml | meshwright uninject -f - \
          | kubectl apply -f -

    Exit status: 0 if the manifests are printed; 1 if a sidecar cannot be removed,
    and then nothing is printed; 2 if the manifests cannot be read.
    """
    from meshwright.kubernetes.injection.manifests import uninject as uninjected

    pieces = pieces_of(file)
    _print(pieces, [uninjected(piece.value, namespace) for piece in pieces], as_json=as_json)


def pieces_of(file: Path) -> "tuple[Piece, ...]":
    """Return the documents of a file; raise CommandFailed."""
    from meshwright.cli.by_hand.text import pieces

    name = "standard input" if str(file) == "-" else str(file)
    content = _content(file, name)
    try:
        return pieces(content.decode("utf-8"), name)
    except UnicodeDecodeError as error:
        raise CommandFailed(f"{name} is not UTF-8 (byte {error.start}): convert it to UTF-8") from error


def _content(file: Path, name: str) -> bytes:
    try:
        if str(file) == "-":
            # One byte more than allowed, to notice a longer input.
            content = read_bytes(_MOST_BYTES + 1)
        else:
            with file.open("rb") as opened:
                content = opened.read(_MOST_BYTES + 1)
    except OSError as error:
        raise CommandFailed(f"{name} cannot be read: {error.strerror or error}") from error
    if len(content) > _MOST_BYTES:
        raise CommandFailed(f"{name} is larger than {_MOST_BYTES >> 20} MiB: split it into several files")
    return content


def config_in(file: Path | None) -> "InjectionConfig":
    """Return the configuration in a file, or the defaults without one; raise CommandFailed."""
    from meshwright.cli.by_hand.text import pieces
    from meshwright.kubernetes.injection.configuration.configuration import (
        ConfigurationError,
        InjectionConfig,
        read,
    )

    if file is None:
        return InjectionConfig()
    try:
        documents = [piece.value for piece in pieces(_content(file, str(file)).decode("utf-8"), str(file))]
        documents = [item for item in documents if item is not None]
        if len(documents) > 1:
            raise CommandFailed(
                f"{file} has {len(documents)} documents: the injection configuration must be one document"
            )
        return read(documents[0] if documents else None, str(file))
    except UnicodeDecodeError as error:
        raise CommandFailed(f"{file} is not UTF-8 (byte {error.start}): convert it to UTF-8") from error
    except ConfigurationError as error:
        raise CommandFailed(*lines_of(error)) from error


def known_mesh(where: Path | None) -> "tuple[MeshConfig, Mapping[str, NamespaceObject]]":
    """Return the MeshConfig and the namespaces of a mesh, or the defaults and no namespaces without one."""
    from catalog.store.view import namespaces
    from meshwright.cli.offline.mesh import read
    from meshwright.mesh.config import MeshConfig
    from meshwright.mesh.kinds import MESH_CONFIG, NAMESPACE
    from meshwright.mesh.problems.problem import Severity

    if where is None:
        return MeshConfig(), {}
    offline_mesh = read(where)
    for problem in offline_mesh.problems:
        if problem.severity is Severity.ERROR and (
            problem.key is None or problem.key.kind in (MESH_CONFIG, NAMESPACE)
        ):
            raise CommandFailed(f"--mesh: {problem}")
    return offline_mesh.view.config, {
        str(namespace.name): namespace for namespace in namespaces(offline_mesh.view).values()
    }


def named_namespace(namespace: str) -> "Namespace | None":
    """Return the control plane's namespace from the option, or None if empty; raise CommandFailed."""
    from meshwright.mesh.names import Namespace, is_dns_label

    if namespace and not is_dns_label(namespace):
        raise CommandFailed(
            f"--control-plane-namespace is {namespace!r}: must be a DNS label, for example meshwright-system"
        )
    return Namespace(namespace) if namespace else None


def _roots(file: Path | None) -> bytes:
    from meshwright.cli.commands.webhook import roots

    return b"" if file is None else roots(file)


def _print(pieces: "Sequence[Piece]", outcomes: "Sequence[Outcome]", *, as_json: bool) -> None:
    results = [injection_result for outcome in outcomes for injection_result in outcome.results]
    failed = [injection_result for injection_result in results if injection_result.failed]
    for injection_result in results:
        for warning in injection_result.warnings:
            print_remarks(f"warning: {injection_result.subject}: {warning}")
        if not injection_result.changed and not injection_result.failed:
            print_remarks(f"unchanged: {injection_result.subject}: {injection_result.why}")
    if as_json:
        print_json(
            {
                "objects": list(map(_result_document, results)),
                "manifests": None if failed else _list(outcomes),
            }
        )
    # Before any manifest is printed: a partial output would be applied without its failed objects.
    if failed:
        raise NegativeAnswer(
            *(f"{injection_result.subject}: {injection_result.why}" for injection_result in failed)
        )
    if not as_json:
        texts = [
            piece.written(outcome.manifest) if outcome.changed else piece.text
            for piece, outcome in zip(pieces, outcomes, strict=True)
        ]
        print_text("".join(texts))


def _result_document(injection_result: "InjectionResult") -> dict[str, object]:
    result = {
        "object": injection_result.subject,
        "changed": injection_result.changed,
        "failed": injection_result.failed,
    }
    return {**result, "why": injection_result.why, "warnings": injection_result.warnings}


def _list(outcomes: "Sequence[Outcome]") -> dict[str, object]:
    items = [outcome.manifest for outcome in outcomes if outcome.manifest is not None]
    return {"apiVersion": "v1", "kind": "List", "items": items}
