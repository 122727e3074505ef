"""`meshwright explain-injection`: why a Pod has a sidecar, gets one, or does not."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from meshwright.cli.commands.inject import InNamespace, config_in, known_mesh, named_namespace, pieces_of
from meshwright.cli.errors import CommandFailed, Status, lines_of
from meshwright.cli.options import AsJson, Context, ControlPlane, Kubeconfig
from meshwright.cli.printing.lines import print_lines, say
from meshwright.cli.printing.responses import print_json
from meshwright.mesh.kinds import POD

if TYPE_CHECKING:
    from meshwright.kube.api import Api
    from meshwright.kubernetes.injection.configuration.configuration import InjectionConfig
    from meshwright.kubernetes.injection.explanation import Explanation
    from meshwright.kubernetes.injection.pod_injection import InjectionInputs
    from meshwright.mesh import config as configured
    from meshwright.mesh.objects import NamespaceObject

Found = tuple[str, "Explanation"]
"""An object's kind and name, and the explanation for its Pods."""

_NOT_ASKED: Final = False


def explain_injection(
    pod: Annotated[str, typer.Argument(metavar="[POD]", help="Name of a Pod in the cluster.")] = "",
    file: Annotated[
        Path | None,
        typer.Option(
            "--file",
            "-f",
            readable=_NOT_ASKED,
            metavar="FILE|-",
            help="Manifests of Pods or workloads to explain instead of a Pod in the cluster.",
        ),
    ] = None,
    namespace: InNamespace = "default",
    config: Annotated[
        Path | None,
        typer.Option(
            readable=_NOT_ASKED,
            help="File with the injection configuration.",
            show_default="the ConfigMap in the cluster; with --file, the defaults",
        ),
    ] = None,
    mesh: Annotated[
        Path | None,
        typer.Option(metavar="DIR|FILE", help="Manifests with the MeshConfig and the Namespaces."),
    ] = None,
    kubeconfig: Kubeconfig = None,
    context: Context = "",
    control_plane: ControlPlane = "",
    as_json: AsJson = False,
) -> None:
    """Explain why a Pod gets a sidecar or not, rule by rule.

    For an existing Pod, the command also compares the Pod's sidecar with the one
    that the Pod would get now. For example:

      meshwright explain-injection buyer-5d8f7 -n shop
      meshwright explain-injection --file deployment.yaml -n shop

    Exit status: 0 if each Pod gets a sidecar, or has the current one; 1 if not; 2
    if the cluster or the manifests cannot be read.
    """
    if bool(pod) == (file is not None):
        raise CommandFailed(
            "the Pod to explain is missing or ambiguous: give either the name of a POD, or --file with "
            "manifests"
        )
    told = replace(config_in(config), **_home(control_plane))
    if file is not None:
        found = _offline(told, file, namespace, mesh)
    else:
        where = kubeconfig, context
        said = asyncio.run(_online(told, config, (namespace, pod), mesh, where))
        found = [(f"{POD.name} {namespace}/{pod}", said)]
    if as_json:
        each = [{"object": what, **document(said)} for what, said in found]
        print_json(each[0] if file is None else {"objects": each})
    else:
        _print(found)
    raise typer.Exit(Status.YES if all(_is_good(said) for _, said in found) else Status.NO)


def _print(found: "Sequence[Found]") -> None:
    for index, (what, said) in enumerate(found):
        head, before = ([what], "  ") if len(found) > 1 else ([], "")
        gap = [""] if index else []
        print_lines(*gap, *head, *(f"{before}{line}" for line in lines(said)))


def _is_good(found: "Explanation") -> bool:
    return found.gets_one and (found.standing is None or found.standing.is_right)


def lines(found: "Explanation") -> Iterator[str]:
    """Yield the lines of an explanation."""
    if found.webhooks is not None:
        yield "Webhooks called when the Pod is created:"
        for each in found.webhooks:
            why = f"no: {each.why_not}" if each.why_not else "yes"
            yield f"  {each.configuration}, {each.webhook}: {why}"
        if not found.webhooks:
            yield "  none: no control plane has registered its injection webhook"
    yield "Rules of the decision:"
    for step in found.steps:
        yield f"  {step.rule}: {step.said or 'not set'}"
    yield f"Result: {found.answer.result}: {found.answer.words}"
    if found.overlays and found.gets_one:
        yield f"  overlays: {', '.join(found.overlays)}"
    for said in found.answer.warnings:
        yield f"  warning: {said}"
    if not found.is_asked:
        yield "  but no webhook is called for the Pod, so it gets no sidecar"
    if found.standing is not None:
        yield f"The existing Pod: {found.standing}"
    for other in found.differences:
        yield f"  {other}"


def document(found: "Explanation") -> Mapping[str, Any]:
    """Return an explanation as JSON."""
    asked = found.webhooks
    return {
        "gets_one": found.gets_one,
        "result": str(found.answer.result),
        "words": found.answer.words,
        "warnings": list(found.answer.warnings),
        "overlays": list(found.overlays),
        "steps": [{"rule": each.rule, "said": each.said} for each in found.steps],
        "webhooks": None
        if asked is None
        else [
            {"configuration": each.configuration, "webhook": each.webhook, "why_not": each.why_not}
            for each in asked
        ],
        "standing": None if found.standing is None else str(found.standing),
        "differences": [
            {"field": each.field, "there": each.there, "wanted": each.wanted} for each in found.differences
        ],
    }


def _offline(told: "InjectionConfig", file: Path, namespace: str, mesh: Path | None) -> "Sequence[Found]":
    from meshwright.kubernetes.injection.explanation import explained
    from meshwright.kubernetes.injection.manifests import namespaces_in, pods_in
    from meshwright.mesh.names import Namespace
    from meshwright.mesh.objects import NamespaceObject

    values = [each.value for each in pieces_of(file)]
    places = [each for value in values for each in pods_in(value, namespace)]
    if not places:
        raise CommandFailed(
            f"{file} has no Pod and no workload that creates Pods: add a manifest of kind Pod or Deployment, "
            "for example"
        )
    known, others = _known(told, mesh)
    spaces = {**others, **namespaces_in(iter(values))}
    found = []
    for place, pod in places:
        its = spaces.get(place.namespace, NamespaceObject(Namespace(place.namespace)))
        if not isinstance(pod, Mapping):
            raise CommandFailed(
                f"{place.what}: {'.'.join(place.path) or 'it'} must be a Pod, or its template"
            )
        found.append((place.what, explained(known, its, pod, ends=place.ends)))
    return found


async def _online(
    told: "InjectionConfig",
    config: Path | None,
    pod: tuple[str, str],
    mesh: Path | None,
    where: tuple[Path | None, str],
) -> "Explanation":
    from meshwright.kube.api import Api
    from meshwright.kube.builtin import MUTATING, NAMESPACES, PODS, minor_version
    from meshwright.kube.connection.connection import found
    from meshwright.kube.errors import KubeError
    from meshwright.kubernetes.injection.explanation import explained
    from meshwright.kubernetes.injection.namespaces import namespace_of

    namespace, name = pod
    try:
        async with Api(found(*where)) as api:
            document = await api.get(PODS, namespace, name)
            its = namespace_of(await api.get(NAMESPACES, None, namespace))
            registered = (await api.list(MUTATING))["items"]
            if config is None:
                told = await _configured(api, told)
            known, _ = _known(told, mesh)
            known = replace(known, version=minor_version(await api.read("/version")))
            if mesh is None:
                known = replace(known, mesh_config=await _mesh_config(api, told.control_plane_namespace))
    except KubeError as error:
        raise CommandFailed(error) from error
    return explained(known, its, document, tuple(registered), runs=True)


async def _mesh_config(api: "Api", home: str) -> "configured.MeshConfig":
    """Return the MeshConfig of the cluster, or the defaults if reading is not permitted."""
    from meshwright.cli.checking.cluster.client import ClusterClient
    from meshwright.cli.checking.cluster.injection import mesh_config
    from meshwright.kube.errors import ApiError
    from meshwright.mesh.config import MeshConfig

    try:
        return await mesh_config(ClusterClient(api), home)
    except ApiError as error:
        say(f"the MeshConfig cannot be read, so its defaults are used: {error}")
        return MeshConfig()


async def _configured(api: "Api", told: "InjectionConfig") -> "InjectionConfig":
    """Return the control plane's configuration, or the default one without a ConfigMap.

    Raises CommandFailed for an invalid configuration, because an explanation by other values would be wrong.
    """
    from meshwright.cli.checking.cluster.client import ClusterClient
    from meshwright.cli.checking.cluster.injection import config_in
    from meshwright.kube.errors import ApiError
    from meshwright.kubernetes.injection.configuration.configuration import ConfigurationError

    try:
        place, found = await config_in(ClusterClient(api), told.control_plane_namespace)
    except ConfigurationError as error:
        raise CommandFailed(*lines_of(error)) from error
    except ApiError as error:
        raise CommandFailed(
            f"the injection configuration of the cluster cannot be read: {error}; or give it with --config "
            "FILE"
        ) from error
    if found is None:
        where = f"{place.namespace}/{place.name}"
        say(
            f"ConfigMap {where} does not exist: using the default injection configuration; to use another, "
            "give --config FILE"
        )
        return told
    return found


def _known(
    told: "InjectionConfig", mesh: Path | None
) -> "tuple[InjectionInputs, Mapping[str, NamespaceObject]]":
    import os

    from meshwright.kubernetes.injection.pod_injection import InjectionInputs
    from meshwright.sidecars.contract.errors import DriverError
    from meshwright.sidecars.registry import DriverRegistry

    mesh_config, others = known_mesh(mesh)
    try:
        drivers = DriverRegistry.discover().drivers
    except DriverError as error:
        raise CommandFailed(error) from error
    return InjectionInputs(told, drivers, mesh_config, os.environ), others


def _home(control_plane: str) -> Mapping[str, Any]:
    found = named_namespace(control_plane)
    return {} if found is None else {"control_plane_namespace": found}
