"""The control plane in its Pods: installation, upgrade, and commands."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from demo.kubernetes.kubectl import Kubectl
from demo.plane import COMMAND
from demo.supervisor import DemoError, run

NAMESPACE: Final = "meshwright-system"
SERVERS: Final = ("pods", "-l", "app.kubernetes.io/component=control-plane", "-n", NAMESPACE)
"""Arguments of `kubectl get` for the Pods of all servers."""
_DEPLOYMENT: Final = "deployment/meshwright"


@dataclass(frozen=True, slots=True)
class Images:
    """Images of the control plane and of the sidecars; `pull` is their pull policy."""

    control_plane: str
    proxy: str
    pull: str = "IfNotPresent"

    def values(self) -> str:
        """Return the chart's values for these images, as text for `meshwright install --set`."""
        lines: list[str] = []
        for key, image in (("image", self.control_plane), ("proxyImage", self.proxy)):
            name, _, tag = image.rpartition(":")
            lines += [f"{key}.repository={name}", f"{key}.tag={tag}", f"{key}.pullPolicy={self.pull}"]
        return ",".join(lines)


@dataclass(slots=True)
class Plane:
    """The control plane of the demo's cluster; `folder` is for files of its user."""

    kubectl: Kubectl
    images: Images
    folder: Path

    async def install(self) -> None:
        """Install the control plane as users do, and wait until it is ready."""
        await self.kubectl("apply", "-f", "-", stdin=await self._manifests())
        await self.ready()

    async def uninstall(self) -> None:
        """Uninstall the control plane, with its resource definitions and all policies."""
        await self.kubectl("delete", "--ignore-not-found", "-f", "-", stdin=await self._manifests())

    async def _manifests(self) -> str:
        return await run([str(COMMAND), "install", "--print", "--set", self.images.values()])

    async def ready(self) -> None:
        """Wait until the rollout is complete and the webhook for Pods is registered."""
        await self.kubectl("rollout", "status", _DEPLOYMENT, "-n", NAMESPACE, "--timeout=390s")
        registered = ("mutatingwebhookconfiguration", "meshwright")
        await self.kubectl.until(lambda result: result.get("webhooks"), *registered)

    async def pods(self) -> list[dict[str, Any]]:
        """Return the Pods of the servers, without those that are being deleted."""
        return remaining(await self.kubectl.get(*SERVERS))

    async def upgrade(self, image: str) -> None:
        """Replace the image of the control plane, and wait until it is ready."""
        self.images = Images(image, self.images.proxy, self.images.pull)
        await self.install()

    async def leader(self) -> dict[str, Any]:
        """Return the Pod of the server that leads."""
        lease = await self.kubectl.get("lease", "meshwright-leader", "-n", NAMESPACE)
        name = str(lease["spec"].get("holderIdentity", ""))
        leaders = [pod for pod in await self.pods() if name.startswith(pod["metadata"]["name"])]
        if not leaders:
            raise DemoError(f"the leader is {name!r}, which is no Pod of the control plane")
        return leaders[0]


def remaining(pods: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the Pods of a list that are not being deleted."""
    return [pod for pod in pods["items"] if "deletionTimestamp" not in pod["metadata"]]
