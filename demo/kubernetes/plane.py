"""The control plane in its own Pod: installed, waited for, and what one asks of it."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

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
        name, _, tag = self.images.control_plane.rpartition(":")
        values = f"image.repository={name},image.tag={tag},image.pullPolicy={self.images.pull}"
        by_hand = "injection.enabled=false"
        return await run([str(COMMAND), "install", "--print", "--set", values, "--set", by_hand])

    async def ready(self) -> None:
        """Wait until it is rolled out."""
        await self.kubectl("rollout", "status", _SET, "-n", NAMESPACE, "--timeout=390s")

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

    async def inject(self, documents: Iterable[Mapping[str, object]]) -> str:
        """Return manifests with sidecars in them, as `meshwright inject` has it."""
        sidecar = {"image": self.images.proxy, "imagePullPolicy": self.images.pull}
        config = self.folder / "injection.json"
        config.write_text(json.dumps({"sidecar": sidecar}), "utf-8")
        given = yaml.safe_dump_all(documents)
        return await run([str(COMMAND), "inject", "-f", "-", "--config", str(config)], given=given)
