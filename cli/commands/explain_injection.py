"""`meshwright explain-injection`: why a pod has a sidecar, gets one, or does not."""

import asyncio
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from cli.commands.inject import InNamespace, config_in, known_mesh, named_namespace, pieces_of
from cli.errors import CommandFailed, Status
from cli.options import AsJson, Context, ControlPlane, Kubeconfig
from cli.printing.answers import print_json
from mesh.kinds import POD

if TYPE_CHECKING:
    from injector.configuration import InjectionConfig
    from injector.explaining import Explanation
    from injector.injecting import Known
    from kube.api import Api
    from mesh.objects import NamespaceObject

_NOT_ASKED: Final = False


def explain_injection(
    pod: Annotated[str, typer.Argument(metavar="[POD]", help="A pod of the cluster.")] = "",
    file: Annotated[
        Path | None,
        typer.Option(
            "--file", "-f", readable=_NOT_ASKED, help="A Pod's manifest instead: no cluster is asked."
        ),
    ] = None,
    namespace: InNamespace = "default",
    config: Annotated[
        Path | None, typer.Option(readable=_NOT_ASKED, help="The injector's configuration. [the chart's]")
    ] = None,
    mesh: Annotated[
        Path | None, typer.Option(metavar="DIR|FILE", help="Manifests with the MeshConfig and Namespaces.")
    ] = None,
    kubeconfig: Kubeconfig = None,
    context: Context = "",
    control_plane: ControlPlane = "",
    as_json: AsJson = False,
) -> None:
    """Say whether API servers ask about a pod, what each rule says of it, and what it gets.

    Status: 0 if it gets a sidecar, or has the one it would get; 1 if not; 2 if nobody could be asked.
    """
    if bool(pod) == (file is not None):
        raise CommandFailed("give either the name of a POD or --file with a Pod's manifest")
    told = replace(config_in(config), **_home(control_plane))
    if file is not None:
        found = _offline(told, file, namespace, mesh)
    else:
        found = asyncio.run(_online(told, config, pod, namespace, mesh, kubeconfig, context))
    if as_json:
        print_json(document(found))
    else:
        sys.stdout.writelines(f"{line}\n" for line in lines(found))
    good = found.gets_one if found.standing is None else found.standing.is_right and found.gets_one
    raise typer.Exit(Status.YES if good else Status.NO)


def lines(found: "Explanation") -> Iterator[str]:
    """Yield an explanation in lines."""
    if found.webhooks is not None:
        yield "Who is asked as it is made:"
        for each in found.webhooks:
            why = f"no: {each.why_not}" if each.why_not else "yes"
            yield f"  {each.configuration}, {each.webhook}: {why}"
        if not found.webhooks:
            yield "  nobody: no control plane has registered its injection"
    yield "What decides:"
    for step in found.steps:
        yield f"  {step.rule}: {step.said or 'nothing is said'}"
    yield f"What comes of it: {found.answer.result}: {found.answer.words}"
    if found.overlays and found.gets_one:
        yield f"  overlays: {', '.join(found.overlays)}"
    for said in found.answer.warnings:
        yield f"  warning: {said}"
    if not found.is_asked:
        yield "  but nobody is asked about it: it gets no sidecar"
    if found.standing is not None:
        yield f"The pod that is there: {found.standing}"


def document(found: "Explanation") -> Mapping[str, Any]:
    """Return an explanation for programs."""
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
    }


def _offline(told: "InjectionConfig", file: Path, namespace: str, mesh: Path | None) -> "Explanation":
    from injector.explaining import explained
    from injector.manifests import namespaces_in
    from mesh.names import Namespace
    from mesh.objects import NamespaceObject

    values = [each.value for each in pieces_of(file)]
    pods = [each for each in values if isinstance(each, Mapping) and each.get("kind") == POD.name]
    if len(pods) != 1:
        raise CommandFailed(f"{file} has {len(pods)} Pods: must have one")
    known, others = _known(told, mesh)
    name = str((pods[0].get("metadata") or {}).get("namespace") or namespace)
    its = {**others, **namespaces_in(iter(values))}.get(name, NamespaceObject(Namespace(name)))
    return explained(known, its, pods[0])


async def _online(
    told: "InjectionConfig",
    config: Path | None,
    pod: str,
    namespace: str,
    mesh: Path | None,
    kubeconfig: Path | None,
    context: str,
) -> "Explanation":
    from injector.explaining import explained
    from injector.namespaces import namespace_of
    from kube.api import Api
    from kube.builtin import MUTATING, NAMESPACES, PODS
    from kube.connection import found
    from kube.errors import KubeError

    try:
        async with Api(found(kubeconfig, context)) as api:
            document = await api.get(PODS, namespace, pod)
            its = namespace_of(await api.get(NAMESPACES, None, namespace))
            registered = (await api.list(MUTATING))["items"]
            if config is None:
                told = await _configured(api, told)
    except KubeError as error:
        raise CommandFailed(error) from error
    known, _ = _known(told, mesh)
    return explained(known, its, document, tuple(registered), runs=True)


async def _configured(api: "Api", told: "InjectionConfig") -> "InjectionConfig":
    """Return the configuration that the chart has put into the cluster; the default one without."""
    from cli.checking.pods import config_of
    from injector.configuration import CONFIG_MAP, ConfigurationError
    from kube.builtin import CONFIG_MAPS
    from kube.errors import ApiError

    home = told.control_plane_namespace
    try:
        found = await api.get(CONFIG_MAPS, home, CONFIG_MAP)
    except ApiError:
        sys.stderr.write(f"there is no ConfigMap {home}/{CONFIG_MAP} to be read: the defaults are taken\n")
        return told
    try:
        return replace(config_of(found, home), control_plane_namespace=home)
    except ConfigurationError as error:
        raise CommandFailed(f"ConfigMap {home}/{CONFIG_MAP}: {error}") from error


def _known(told: "InjectionConfig", mesh: Path | None) -> "tuple[Known, Mapping[str, NamespaceObject]]":
    import os

    from injector.injecting import Known
    from sidecars.contract.errors import DriverError
    from sidecars.registry import DriverRegistry

    mesh_config, others = known_mesh(mesh)
    try:
        drivers = DriverRegistry.discover().drivers
    except DriverError as error:
        raise CommandFailed(error) from error
    return Known(told, drivers, mesh_config, os.environ), others


def _home(control_plane: str) -> Mapping[str, Any]:
    found = named_namespace(control_plane)
    return {} if found is None else {"control_plane_namespace": found}
