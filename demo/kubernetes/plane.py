"""The control plane in its own Pod: installed, waited for, and what one asks of it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from demo.kubernetes.kubectl import Kubectl
from demo.plane import COMMAND
from demo.supervisor import run

NAMESPACE: Final = "meshwright-system"
POD: Final = "meshwright-0"
_SET: Final = "statefulset/meshwright"


@dataclass(frozen=True, slots=True)
class Images:
    """The images of an installation: of the control plane, and of the sidecars; `pull` is a pull policy."""

    control_plane: str
    proxy: str
    pull: str = "IfNotPresent"

    def values(self) -> str:
        """Return what is said of an installation."""
        said: list[str] = []
        for key, image in (("image", self.control_plane), ("proxyImage", self.proxy)):
            name, _, tag = image.rpartition(":")
            said += [f"{key}.repository={name}", f"{key}.tag={tag}", f"{key}.pullPolicy={self.pull}"]
        return ",".join(said)


@dataclass(slots=True)
class Plane:
    """The control plane of a cluster; `folder` is for what its user keeps in files."""

    kubectl: Kubectl
    images: Images
    folder: Path

    async def install(self) -> None:
        """Install it as its users do, and return when it is ready."""
        await self.kubectl("apply", "-f", "-", given=await self._manifests())
        await self.ready()

    async def uninstall(self) -> None:
        """Take it away, with its kinds and all policy."""
        await self.kubectl("delete", "--ignore-not-found", "-f", "-", given=await self._manifests())

    async def _manifests(self) -> str:
        return await run([str(COMMAND), "install", "--print", "--set", self.images.values()])

    async def ready(self) -> None:
        """Wait until it is rolled out, and API servers are told to ask it about Pods."""
        await self.kubectl("rollout", "status", _SET, "-n", NAMESPACE, "--timeout=390s")
        registered = ("mutatingwebhookconfiguration", "meshwright")
        await self.kubectl.until(lambda found: found.get("webhooks"), *registered)

    async def pod(self) -> dict[str, Any]:
        """Return its Pod."""
        return await self.kubectl.get("pod", POD, "-n", NAMESPACE)

    async def upgrade(self, image: str) -> None:
        """Have it run of another image, and return when it does."""
        self.images = Images(image, self.images.proxy, self.images.pull)
        await self.install()

    async def run(self, *words: str) -> str:
        """Run a command of the program in its Pod; return what it prints."""
        return await self.kubectl("exec", POD, "-n", NAMESPACE, "--", "meshwright", *words)
