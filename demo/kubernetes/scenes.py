"""Scenes: work of operators on a mesh in use, for example updates and upgrades, while calls go on."""

import os
import signal
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Final

from demo.apps import names
from demo.apps.control import AppClient
from demo.apps.probe import Probe
from demo.display.verdicts import Verdict
from demo.kubernetes import images
from demo.kubernetes import purchases as asking
from demo.kubernetes.load import under_load
from demo.kubernetes.outside import outsider
from demo.kubernetes.plane import NAMESPACE, SERVERS, Plane, remaining
from demo.kubernetes.pods import is_ready
from demo.kubernetes.store import PodStore, applications, scene
from demo.matrix import PHASES, REQUESTS
from demo.supervisor import DemoError
from demo.topology import BOOKBUYER, BOOKSTORE, BOOKTHIEF, STORE_V1
from tools.real_parts.node import Node

_SCALED: Final = 5
_PURCHASES: Final = "bought 20 of 20"
_ACCESS: Final = PHASES[2].manifests
_ALLOW_THIEF: Final = PHASES[3].manifests
_AT: Final = ("-n", "bookstore")
_DEPLOYMENT: Final = "deployment/bookstore"
_PODS: Final = ("pods", "-l", "app=bookstore", *_AT)
_READINESS: Final = {
    "tcpSocket": {"port": "web"},
    "periodSeconds": 1,
    "timeoutSeconds": 5,
    "failureThreshold": 12,
}


class Scenes:
    """Scenes on a running bookstore; `print_line` gets a line for each finished scene.

    Without `node` the scenes that kill processes of the node are left out.
    """

    def __init__(
        self, store: PodStore, plane: Plane, print_line: Callable[[str], None], node: Node | None = None
    ) -> None:
        self._store = store
        self._kubectl = store.kubectl
        self._plane = plane
        self._print = print_line
        self._is_probed = False
        self.scenes: dict[str, Callable[[], Awaitable[list[Verdict]]]] = {
            "rolling": self._rolling,
            "deleted": self._deleted,
            "upgraded": self._upgraded,
            "job": self._job,
            "stateful": self._stateful,
            "scale": self._scale,
            "outsider": lambda: outsider(self._store),
        }
        if node is not None:
            self.scenes["killed"] = lambda: self._killed(node)
            self.scenes["kubelet"] = lambda: self._kubelet(node)

    async def run(self, wanted: Sequence[str] = ()) -> tuple[Verdict, ...]:
        """Run the scenes with these names, or all scenes, one after the other; return all verdicts."""
        chosen = tuple(wanted or self.scenes)
        await self._store.change(_ACCESS)
        # All scenes need Pods with a readiness probe; the scene `rolling` makes this update itself.
        if chosen[0] != "rolling":
            await self._update()
            await self._kubectl.until(lambda pods: len(pods["items"]) == 1, *_PODS)
        await self._takes_effect("")
        verdicts: list[Verdict] = []
        for name in chosen:
            began = time.monotonic()
            result = await self.scenes[name]()
            verdicts += result
            held = sum(verdict.holds for verdict in result)
            self._print(f"{name:<9} {held}/{len(result)}  {time.monotonic() - began:5.1f} s")
            for item in result:
                self._print(f"   {'' if item.holds else 'WRONG: '}{item.what}: {item.observed}")
        return tuple(verdicts)

    async def _update(self) -> None:
        """Replace the store's Pods: the first time by Pods with a readiness probe, later by equal Pods.

        OSM's published manifests have no readiness probe, and without one calls fail when a Pod is replaced.
        The probe tolerates a busy node, because an unready store answers no calls, with or without a mesh.
        """
        if self._is_probed:
            await self._kubectl("rollout", "restart", _DEPLOYMENT, *_AT)
        else:
            (store,) = (application for application in applications() if _is_store(application))
            store["spec"]["strategy"] = {"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}}
            (container,) = store["spec"]["template"]["spec"]["containers"]
            container["readinessProbe"] = _READINESS
            await self._store.deploy([store])
            self._is_probed = True
        await self._rolled_out()

    async def _rolling(self) -> list[Verdict]:
        verdicts: list[Verdict] = []
        before = await self._pods()
        async with under_load(
            self._store, verdicts, "rolling", "the Deployment of the bookstore is updated"
        ) as counting:
            await self._update()
            after = await self._gone(before)
            served = await counting.served_by(after)
        observed = f"{len(served)} of {len(after)} new Pods served"
        return [
            *verdicts,
            Verdict(
                "rolling",
                "Pods that serve after the update",
                "all new Pods",
                observed,
                served == after != set(),
            ),
        ]

    async def _scale(self) -> list[Verdict]:
        verdicts: list[Verdict] = []
        what = f"the Deployment is scaled from 1 to {_SCALED} Pods and back"
        async with under_load(self._store, verdicts, "scale", what) as counting:
            await self._kubectl("scale", _DEPLOYMENT, f"--replicas={_SCALED}", *_AT)
            await self._rolled_out()
            grown = await self._pods()
            served = await counting.served_by(grown)
            await self._kubectl("scale", _DEPLOYMENT, "--replicas=1", *_AT)
            await self._kubectl.until(lambda pods: len(pods["items"]) == 1, *_PODS)
        observed = f"{len(served)} of {len(grown)} Pods served"
        holds = len(grown) == _SCALED and served == grown
        return [
            *verdicts,
            Verdict("scale", "Pods that serve meanwhile", f"all {_SCALED} Pods", observed, holds),
        ]

    async def _killed(self, node: Node) -> list[Verdict]:
        verdicts: list[Verdict] = []
        what = "all servers of the control plane are killed (SIGKILL)"
        async with under_load(self._store, verdicts, "killed", what) as counting:
            pods = await self._plane.pods()
            for pod in pods:
                os.kill(_server(node, str(pod["metadata"]["uid"])), signal.SIGKILL)
            # Calls must also succeed while the control plane is down.
            await counting.more()
            before = {str(pod["metadata"]["name"]): _restarts(pod) for pod in pods}
            await self._servers_are(lambda now: _restarts(now) > before[now["metadata"]["name"]], len(pods))
            verdicts.append(await self._takes_effect("killed"))
        return verdicts

    async def _deleted(self) -> list[Verdict]:
        verdicts: list[Verdict] = []
        what = "the Pod of the leading server is deleted"
        async with under_load(self._store, verdicts, "deleted", what) as counting:
            leader, servers = await self._plane.leader(), len(await self._plane.pods())
            uid, name = (str(leader["metadata"][field]) for field in ("uid", "name"))
            await self._kubectl("delete", "pod", name, "-n", NAMESPACE, "--wait=false")
            # The other server serves meanwhile.
            verdicts.append(await self._takes_effect("deleted"))
            await counting.more()
            await self._servers_are(lambda now: bool(now["metadata"]["uid"] != uid), servers)
        return verdicts

    async def _upgraded(self) -> list[Verdict]:
        verdicts: list[Verdict] = []
        async with under_load(self._store, verdicts, "upgraded", "the control plane is upgraded"):
            await self._plane.upgrade(images.UPGRADED)
            verdicts.append(await self._takes_effect("upgraded"))
            pods = await self._plane.pods()
        found = [str(container["image"]) for pod in pods for container in pod["spec"]["containers"]]
        what, observed = "images of the control plane", ", ".join(found)
        return [
            *verdicts,
            Verdict("upgraded", what, images.UPGRADED, observed, {*found} == {images.UPGRADED}),
        ]

    async def _kubelet(self, node: Node) -> list[Verdict]:
        verdicts: list[Verdict] = []
        before = await self._running()
        what = "the kubelet of the node is killed (SIGKILL) and restarted"
        async with under_load(self._store, verdicts, "kubelet", what) as counting:
            node.kubelet.kill()
            # Started before any wait, because the totals of the load are read by `kubectl exec`, which needs
            # the kubelet.
            node.kubelet.again()
            await self._kubectl("wait", "--for=condition=Ready", "nodes", "--all", "--timeout=120s")
            await counting.more()
            verdicts.append(await self._takes_effect("kubelet"))
        after = await self._running()
        observed = "the same" if before == after else f"differences: {sorted(before ^ after)}"
        return [
            *verdicts,
            Verdict("kubelet", "Pods and their restarts", "the same", observed, before == after),
        ]

    async def _job(self) -> list[Verdict]:
        await self._store.deploy(scene("job.yaml"))
        words = ("job", "purchase", "-n", "bookbuyer")
        await self._kubectl.until(lambda job: job.get("status", {}).get("conditions"), *words)
        (pod,) = (await self._kubectl.get("pods", "-l", "app=purchase", "-n", "bookbuyer"))["items"]
        text = (await self._kubectl("logs", "job/purchase", "-n", "bookbuyer", "-c", "purchase")).strip()
        ends = [_exit(status) for status in pod["status"]["initContainerStatuses"]]
        await self._kubectl("delete", *words)
        phase = pod["status"]["phase"]
        holds = phase == "Succeeded" and ends == [0, 0] and text == _PURCHASES
        observed = f"{phase}; {text}; init container and sidecar ended with {ends}"
        return [Verdict("job", "Pod of the Job", f"Succeeded; {_PURCHASES}", observed, holds)]

    async def _stateful(self) -> list[Verdict]:
        await self._store.deploy(scene("stateful.yaml"))
        await self._kubectl("rollout", "status", "statefulset/shelf", *_AT, "--timeout=390s")
        hosts = [
            (f"shelf-{n}", f"shelf-{n}.shelf.bookstore{end}")
            for n in (0, 1)
            for end in ("", ".svc.cluster.local")
        ]
        verdicts = [await self._called(*host) for host in hosts]
        await self._store.remove(scene("stateful.yaml"))
        return verdicts

    async def _called(self, name: str, host: str) -> Verdict:
        """Call one Pod of a StatefulSet by the Pod's own DNS name, and return a verdict."""
        buyer = AppClient(self._store.kubectl_programs[BOOKBUYER.name])
        headers = tuple(names.client_headers(BOOKBUYER.name).items())
        probe = Probe(host, 14001, "shelf", REQUESTS, "GET", names.BUY_A_BOOK, headers)
        limit = time.monotonic() + 60
        while dict((got := await buyer.probe(probe)).identities) != {name: REQUESTS}:
            if time.monotonic() > limit:
                break
        holds = dict(got.identities) == {name: REQUESTS}
        observed = f"{dict(got.results)} by {dict(got.identities)}"
        return Verdict("stateful", f"calls to {host}", f"all served by {name}", observed, holds)

    async def _takes_effect(self, name: str) -> Verdict:
        """Allow bookthief and deny it again, which proves a working control plane with connected sidecars."""
        began = time.monotonic()
        thief, seller = (
            self._store.kubectl_programs[BOOKTHIEF.name],
            self._store.kubectl_programs[STORE_V1.name],
        )
        target = self._store.target(BOOKTHIEF, BOOKSTORE)
        await self._store.change(_ALLOW_THIEF)
        let_in = await asking.settle(thief, seller, *target, served=True)
        await self._store.change(_ACCESS)
        kept_out = await asking.settle(thief, seller, *target, served=False)
        holds = let_in.is_served(1) and kept_out.is_denied(1)
        observed = f"after {time.monotonic() - began:.1f} s" if holds else f"{let_in}, then {kept_out}"
        return Verdict(name, "bookthief is allowed, and denied again", "served, then denied", observed, holds)

    async def _servers_are(self, holds: Callable[[dict[str, Any]], bool], number: int) -> None:
        """Wait until the control plane has this number of Pods, and each is ready and as expected."""

        def are(pods: dict[str, Any]) -> bool:
            found = remaining(pods)
            return len(found) == number and all(is_ready(pod) and holds(pod) for pod in found)

        await self._kubectl.until(are, *SERVERS)

    async def _rolled_out(self) -> None:
        await self._kubectl("rollout", "status", _DEPLOYMENT, *_AT, "--timeout=390s")

    async def _pods(self) -> set[str]:
        return _names(await self._kubectl.get(*_PODS))

    async def _gone(self, before: set[str]) -> set[str]:
        """Wait until all Pods of `before` are gone; return the present Pods."""
        return _names(await self._kubectl.until(lambda pods: not before & _names(pods), *_PODS))

    async def _running(self) -> set[tuple[str, int]]:
        """Return all Pods with the number of their container restarts."""
        pods = (await self._kubectl.get("pods", "--all-namespaces"))["items"]
        return {(str(pod["metadata"]["name"]), _restarts(pod)) for pod in pods}


def _is_store(document: dict[str, Any]) -> bool:
    return bool(document["kind"] == "Deployment" and document["metadata"]["name"] == "bookstore")


def _names(pods: dict[str, Any]) -> set[str]:
    return {str(item["metadata"]["name"]) for item in pods["items"]}


def _restarts(pod: dict[str, Any]) -> int:
    status = pod["status"]
    containers = [*status.get("containerStatuses", ()), *status.get("initContainerStatuses", ())]
    return sum(int(container["restartCount"]) for container in containers)


def _exit(container: dict[str, Any]) -> object:
    return container["state"].get("terminated", {}).get("exitCode")


def _server(node: Node, uid: str) -> int:
    """Return the pid of the control plane's process in its Pod, as seen from the host."""
    for process in node.processes(uid):
        if b"\0serve\0" in Path(f"/proc/{process}/cmdline").read_bytes():
            return process
    raise DemoError(f"Pod {uid} has no process of the control plane")
