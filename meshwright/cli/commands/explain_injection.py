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
from meshwright.cli.printing.lines import print_lines, print_remarks
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
        raise CommandFailed("a Pod is required: give either the name of a POD, or --file with manifests")
    injection_config = replace(config_in(config), **_home(control_plane))
    if file is not None:
        result = _offline(injection_config, file, namespace, mesh)
    else:
        where = kubeconfig, context
        explanation = asyncio.run(_online(injection_config, config, (namespace, pod), mesh, where))
        result = [(f"{POD.name} {namespace}/{pod}", explanation)]
    if as_json:
        item = [{"object": what, **document(explanation)} for what, explanation in result]
        print_json(item[0] if file is None else {"objects": item})
    else:
        _print(result)
    raise typer.Exit(Status.YES if all(_is_good(answer) for _, answer in result) else Status.NO)


def _print(result: "Sequence[Found]") -> None:
    for index, (what, explanation) in enumerate(result):
        head, before = ([what], "  ") if len(result) > 1 else ([], "")
        gap = [""] if index else []
        print_lines(*gap, *head, *(f"{before}{line}" for line in lines(explanation)))


def _is_good(explanation: "Explanation") -> bool:
    return explanation.gets_one and (explanation.standing is None or explanation.standing.is_right)


def lines(explanation: "Explanation") -> Iterator[str]:
    """Yield the lines for people of an explanation of injection."""
    if explanation.webhooks is not None:
        yield "Webhooks called when the Pod is created:"
        for webhook in explanation.webhooks:
            why = f"no: {webhook.why_not}" if webhook.why_not else "yes"
            yield f"  {webhook.configuration}, {webhook.webhook}: {why}"
        if not explanation.webhooks:
            yield "  none: no control plane has registered its injection webhook"
    yield "Rules of the decision:"
    for step in explanation.steps:
        yield f"  {step.rule}: {step.result or 'not set'}"
    yield f"Result: {explanation.answer.result}: {explanation.answer.words}"
    if explanation.overlays and explanation.gets_one:
        yield f"  overlays: {', '.join(explanation.overlays)}"
    for warning in explanation.answer.warnings:
        yield f"  warning: {warning}"
    if not explanation.is_selected:
        yield "  but no webhook is called for the Pod, so the Pod does not get a sidecar"
    if explanation.standing is not None:
        yield f"The existing Pod: {explanation.standing}"
    for other in explanation.differences:
        yield f"  {other}"


def document(explanation: "Explanation") -> Mapping[str, Any]:
    """Return an explanation as JSON."""
    asked = explanation.webhooks
    return {
        "gets_one": explanation.gets_one,
        "result": str(explanation.answer.result),
        "words": explanation.answer.words,
        "warnings": list(explanation.answer.warnings),
        "overlays": list(explanation.overlays),
        "steps": [{"rule": step.rule, "said": step.result} for step in explanation.steps],
        "webhooks": None
        if asked is None
        else [
            {
                "configuration": webhook_match.configuration,
                "webhook": webhook_match.webhook,
                "why_not": webhook_match.why_not,
            }
            for webhook_match in asked
        ],
        "standing": None if explanation.standing is None else str(explanation.standing),
        "differences": [
            {"field": difference.field, "there": difference.there, "wanted": difference.wanted}
            for difference in explanation.differences
        ],
    }


def _offline(config: "InjectionConfig", file: Path, namespace: str, mesh: Path | None) -> "Sequence[Found]":
    from meshwright.kubernetes.injection.explanation import explained
    from meshwright.kubernetes.injection.manifests import namespaces_in, pods_in
    from meshwright.mesh.names import Namespace
    from meshwright.mesh.objects import NamespaceObject

    values = [piece.value for piece in pieces_of(file)]
    places = [item for value in values for item in pods_in(value, namespace)]
    if not places:
        raise CommandFailed(
            f"{file} lacks a Pod or a workload that creates Pods: add a manifest of kind Pod or Deployment, "
            "for example"
        )
    known, others = _known(config, mesh)
    spaces = {**others, **namespaces_in(iter(values))}
    result = []
    for place, pod in places:
        its = spaces.get(place.namespace, NamespaceObject(Namespace(place.namespace)))
        if not isinstance(pod, Mapping):
            raise CommandFailed(
                f"{place.subject}: {'.'.join(place.path) or 'it'} must be a Pod, or its template"
            )
        result.append((place.subject, explained(known, its, pod, ends=place.ends)))
    return result


async def _online(
    injection_config: "InjectionConfig",
    config: Path | None,
    pod: tuple[str, str],
    mesh: Path | None,
    where: tuple[Path | None, str],
) -> "Explanation":
    from meshwright.kube.api import Api
    from meshwright.kube.builtin import MUTATING, NAMESPACES, PODS, minor_version
    from meshwright.kube.connection.connection import find_connection
    from meshwright.kube.errors import KubeError
    from meshwright.kubernetes.injection.explanation import explained
    from meshwright.kubernetes.injection.namespaces import namespace_of

    namespace, name = pod
    try:
        async with Api(find_connection(*where)) as api:
            document = await api.get(PODS, namespace, name)
            its = namespace_of(await api.get(NAMESPACES, None, namespace))
            registered = (await api.list(MUTATING))["items"]
            if config is None:
                injection_config = await _configured(api, injection_config)
            known, _ = _known(injection_config, mesh)
            known = replace(known, version=minor_version(await api.read("/version")))
            if mesh is None:
                known = replace(
                    known, mesh_config=await _mesh_config(api, injection_config.control_plane_namespace)
                )
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
        print_remarks(f"the MeshConfig cannot be read, so its defaults are used: {error}")
        return MeshConfig()


async def _configured(api: "Api", config: "InjectionConfig") -> "InjectionConfig":
    """Return the control plane's configuration, or the default one without a ConfigMap.

    Raises CommandFailed for an invalid configuration, because an explanation by other values would be wrong.
    """
    from meshwright.cli.checking.cluster.client import ClusterClient
    from meshwright.cli.checking.cluster.injection import config_in
    from meshwright.kube.errors import ApiError
    from meshwright.kubernetes.injection.configuration.configuration import ConfigurationError

    try:
        place, injection_config = await config_in(ClusterClient(api), config.control_plane_namespace)
    except ConfigurationError as error:
        raise CommandFailed(*lines_of(error)) from error
    except ApiError as error:
        raise CommandFailed(
            f"the injection configuration of the cluster cannot be read: {error}; or give it with --config "
            "FILE"
        ) from error
    if injection_config is None:
        where = f"{place.namespace}/{place.name}"
        print_remarks(
            f"ConfigMap {where} does not exist: using the default injection configuration; to use another, "
            "give --config FILE"
        )
        return config
    return injection_config


def _known(
    config: "InjectionConfig", mesh: Path | None
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
    return InjectionInputs(config, drivers, mesh_config, os.environ), others


def _home(control_plane: str) -> Mapping[str, Any]:
    namespace = named_namespace(control_plane)
    return {} if namespace is None else {"control_plane_namespace": namespace}
