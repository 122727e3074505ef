"""Parts that injection adds to a pod: two containers and the volumes, with the overlays applied."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import cast

from meshwright.sidecars.contract.errors import CannotPatchError
from meshwright.sidecars.contract.kubernetes import Container, Volume
from meshwright.sidecars.contract.pod import InjectorContext, Overlay, Placement, PodOs
from meshwright.sidecars.injection import names
from meshwright.sidecars.injection.author_container import OwnContainer
from meshwright.sidecars.injection.containers.init_container import init_container
from meshwright.sidecars.injection.containers.sidecar_container import confined, container
from meshwright.sidecars.injection.containers.volumes import volumes
from meshwright.sidecars.injection.merging import merged, merged_list
from meshwright.sidecars.injection.sidecar import Sidecar
from meshwright.sidecars.layout import PROXY_UID


@dataclass(frozen=True, slots=True)
class Parts:
    """Parts added to a pod; `interception` is None if the pod's traffic is not captured."""

    sidecar: Container
    interception: Container | None
    volumes: tuple[Volume, ...]

    @property
    def containers(self) -> tuple[Container, ...]:
        """Return the one or two injected containers."""
        return (self.sidecar,) if self.interception is None else (self.sidecar, self.interception)

    def under(self, overlays: Iterable[Overlay]) -> "Parts":
        """Return the parts with overlays applied, in order."""
        result = self
        for overlay in overlays:
            within = cast("list[Mapping[str, object]]", list(result.volumes))
            result = replace(
                result.patched(names.SIDECAR_CONTAINER, overlay.sidecar).patched(
                    names.INIT_CONTAINER, overlay.interception
                ),
                volumes=tuple(cast("list[Volume]", merged_list(within, overlay.volumes, "volumes"))),
            )
        return result

    def overruled(self, own: Iterable[OwnContainer]) -> "Parts":
        """Return the parts, in which the fields of the author's own containers take precedence."""
        result = self
        for own_container in own:
            result = result.patched(own_container.name, own_container.patch)
        return result

    def patched(self, name: str, patch: Mapping[str, object]) -> "Parts":
        """Return the parts with a patch applied to the container with this name."""
        if name == names.SIDECAR_CONTAINER:
            return replace(self, sidecar=_merged(self.sidecar, patch))
        if self.interception is None:
            return self
        return replace(self, interception=_merged(self.interception, patch))


def parts(context: InjectorContext, sidecar: Sidecar) -> Parts:
    """Return the parts for a pod, with the mesh's overlays. Raises CannotPatchError."""
    made = container(context, sidecar, _image(context))
    if context.os is PodOs.LINUX:
        made["securityContext"] = confined(raw_sockets=sidecar.raw_sockets)
    if context.placement is Placement.NATIVE:
        made["restartPolicy"] = "Always"
    rules = init_container(context, _init_image(context)) if sidecar.intercepts else None
    result = Parts(made, rules, tuple(volumes(context, sidecar)))
    return result.under(context.overlays)


def require_whole(result: Parts, sidecar: Sidecar, placement: Placement) -> None:
    """Raise CannotPatchError if overlays have made a sidecar unusable."""
    _require_place(result.sidecar, "Always" if placement is Placement.NATIVE else None, placement)
    if result.interception is not None:  # the application begins when it has ended well
        _require_place(result.interception, None, placement)
    for item in (result.sidecar, result.interception):
        if item is not None and not isinstance(item.get("image"), str):
            raise CannotPatchError(f"container {item.get('name')} has no image")
    user = result.sidecar.get("securityContext", {}).get("runAsUser")
    if sidecar.intercepts and user != PROXY_UID and not sidecar.raw_sockets:
        raise CannotPatchError(
            f"container {names.SIDECAR_CONTAINER} would run as user {user}: must be {PROXY_UID}, "
            "because the traffic of other users is redirected to the sidecar again"
        )


def _require_place(container: Container, policy: str | None, placement: Placement) -> None:
    """Raise CannotPatchError if a container has the wrong restartPolicy for the placement."""
    if (text := container.get("restartPolicy")) != policy:
        raise CannotPatchError(
            f"container {container.get('name')} would have restartPolicy {text}: must "
            f"{'be absent' if policy is None else f'be {policy}'} if the placement of the sidecar is "
            f"{placement}"
        )


def _merged(base: Container, patch: Mapping[str, object]) -> Container:
    name = base.get("name", "")
    result = merged(cast("Mapping[str, object]", base), patch)
    return cast("Container", result | {"name": name})


def _image(context: InjectorContext) -> str:
    selection = context.selection
    image = selection.windows_image if context.os is PodOs.WINDOWS else selection.linux_image
    if not image:
        raise CannotPatchError(
            f"no image is configured for the {context.os} sidecar of driver {selection.driver}: "
            "set one in the MeshConfig (spec.sidecar, or sidecarDrivers in it), or in the "
            "environment of the control plane"
        )
    return image


def _init_image(context: InjectorContext) -> str:
    image = context.selection.init_image or context.selection.linux_image
    if not image:
        raise CannotPatchError("no image is configured for the init container")
    return image
