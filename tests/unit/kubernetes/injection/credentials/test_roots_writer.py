"""Tests of the writer of ConfigMaps with the mesh's roots, with refusals and other writers."""

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime

import pytest

import meshwright.kubernetes.admission.registration
from meshwright.kubernetes.injection.configuration.configuration import InjectionConfig, read
from meshwright.kubernetes.injection.credentials import roots_writer as keeper
from meshwright.kubernetes.injection.credentials.pod_roots import Reach, at_home
from meshwright.kubernetes.injection.credentials.roots_writer import PodRoots, WritePause
from meshwright.mesh.kinds import NAMESPACE
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import NamespaceObject, ObjectKey, SourcedObject
from meshwright.mesh.origins import InFile
from meshwright.mesh.values.picture import Picture
from meshwright.providers.merge import MergedObjects
from tests.unit.kube.scripted_api import Line, Part, ReceivedRequest, ScriptedServer, api_of
from tests.unit.kubernetes.admission.test_registration import none_there

NAME = "meshwright-roots"


def _merged(*names: str) -> MergedObjects:
    label = (("meshwright.dev/inject", "true"),)
    keys = {item: ObjectKey(NAMESPACE, Namespace(""), item) for item in names}
    sourced_objects = {
        key: SourcedObject(key, NamespaceObject(Namespace(name), label), InFile("a.yaml"))
        for name, key in keys.items()
    }
    return MergedObjects((("test", Picture(sourced_objects)),))


@contextlib.asynccontextmanager
async def _kept(play: Part, *names: str, leads: Callable[[], bool] = lambda: True) -> AsyncIterator[PodRoots]:
    merged = _merged(*names)
    async with ScriptedServer(play) as server, api_of(server) as api:
        reach = Reach(at_home("meshwright-system"))
        made = PodRoots(
            *(api, NAME, "meshwright-system", reach, lambda: b"roots", lambda: merged),
            lambda: datetime.now(UTC),
            leads=leads,
        )
        tasks = [asyncio.create_task(work) for _, work in made.works()]
        try:
            async with asyncio.timeout(60):
                yield made
            assert not any(task.done() for task in tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def test_missing_rbac_grant_is_tried_in_one_namespace_only() -> None:
    """A missing verb fails in every namespace, so one request is enough.

    The remark names verb and resource, because a change of the roots would not reach the pods.
    """
    asked = Counter[str]()

    async def play(item: ReceivedRequest, line: Line) -> None:
        if item.method != "PATCH":
            await none_there(item, line)
            return
        asked[item.path] += 1
        await line.refuse(403, "Forbidden", 'x is forbidden: User "mesh" cannot patch configmaps')

    async with _kept(play, "one", "two") as kept:
        while not kept.state.error:
            await asyncio.sleep(0)
        assert "RBAC grants no `patch` on `configmaps`" in kept.error
        assert [remark.partition(": ")[0] for remark in kept.remarks()] == [f"cannot write ConfigMap {NAME}"]
        assert kept.trusted == b""
        assert asked == {f"/api/v1/namespaces/one/configmaps/{NAME}": 1}


async def test_quota_of_one_namespace_does_not_stop_writes_to_another() -> None:
    """The exceeded quota is reported.

    Writes are never forced, so that an existing ConfigMap of another owner stays.
    """
    bodies = dict[str, bytes]()

    async def play(item: ReceivedRequest, line: Line) -> None:
        if item.method != "PATCH":
            await none_there(item, line)
            return
        assert item.query["force"] == "false"
        bodies[item.path.split("/")[4]] = item.body
        if "/one/" in item.path:
            await line.refuse(403, "Forbidden", "exceeded quota: maps, requested: count/configmaps=1")
        else:
            await line.answer({"kind": "ConfigMap", "metadata": {"resourceVersion": "1"}})

    async with _kept(play, "one", "two") as kept:
        while len(bodies) < 2 or not kept.state.error:
            await asyncio.sleep(0)
        assert "exceeded quota" in kept.error
    answer = json.loads(bodies["two"])
    assert answer["data"] == {"ca.pem": "roots"}
    labels = {
        "app.kubernetes.io/managed-by": "meshwright",
        "meshwright.dev/control-plane": "meshwright-system",
    }
    assert answer["metadata"] == {"name": NAME, "labels": labels}


async def test_disputed_config_map_is_rewritten_rarely_and_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another control plane may claim the namespace; pauses keep both from writing all the time."""
    monkeypatch.setattr(meshwright.kubernetes.admission.registration, "REST_SECONDS", 0.001)
    monkeypatch.setattr(keeper, "PACE_SECONDS", 0.0)

    async def play(item: ReceivedRequest, line: Line) -> None:
        if item.method == "PATCH":  # and the ConfigMap is never listed
            await line.answer({"kind": "ConfigMap", "metadata": {"resourceVersion": "1"}})
        else:
            await none_there(item, line)

    async with _kept(play, "one") as kept:
        while not kept.remarks():
            await asyncio.sleep(0)
        (text,) = kept.remarks()
        assert text == f"another program repeatedly changes ConfigMap {NAME} in: one"


def test_pauses_between_writes_grow_and_restart_after_a_calm_time() -> None:
    """The first writes follow each other quickly, as when the roots change."""
    one = WritePause().after(5000.0)
    assert (one.times, one.until - 5000.0) == (1, meshwright.kubernetes.admission.registration.REST_SECONDS)
    many = one
    for _ in range(10):
        many = many.after(many.until)
    assert many.times == 11
    assert many.until > one.until + 100
    assert many.after(many.until + meshwright.kubernetes.admission.registration.CALM_SECONDS + 1).times == 1


async def test_namespaces_follow_a_changed_injection_configuration_at_once() -> None:
    """The configuration names the mesh whose namespaces get roots.

    A different ConfigMap name in the configuration of injected pods is reported.
    """
    config: list[InjectionConfig | None] = [None]
    label = (("openservicemesh.io/monitored-by", "theirs"),)
    key = ObjectKey(NAMESPACE, Namespace(""), "one")
    value = SourcedObject(key, NamespaceObject(Namespace("one"), label), InFile("a.yaml"))
    merged, written = MergedObjects((("test", Picture({key: value})),)), list[str]()

    async def play(item: ReceivedRequest, line: Line) -> None:
        if item.method != "PATCH":
            await none_there(item, line)
            return
        written.append(item.path.split("/")[4])
        await line.answer({"kind": "ConfigMap", "metadata": {"resourceVersion": "1"}})

    async with ScriptedServer(play) as server, api_of(server) as api:
        reach = Reach(read({"mesh": "ours"}, "config.yaml"))
        made = PodRoots(
            *(api, NAME, "meshwright-system", reach, lambda: b"roots", lambda: merged),
            *(lambda: datetime.now(UTC), lambda: config[0]),
        )
        assert (made._follow(), made._reach.names) == (False, frozenset())
        config[0] = read({"mesh": "theirs", "controlPlane": {"rootsConfigMap": "others"}}, "config.yaml")
        tasks = [asyncio.create_task(work) for _, work in made.works()]
        async with asyncio.timeout(60):
            made.noticed()
            while not written:
                await asyncio.sleep(0)
        assert made.remarks() == (
            f"the control plane writes ConfigMap {NAME}, but injected pods use: others",
        )
        config[0] = read({"mesh": "ours"}, "config.yaml")
        assert (made._follow(), made._reach.names, made.remarks()) == (True, frozenset(), ())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    assert written == ["one"]


async def test_roots_are_written_by_the_leader_only() -> None:
    """A server that is behind in a root rotation would take back the new root."""
    leads, looks, too_early = [False], 0, list[str]()
    written = asyncio.Event()

    async def play(item: ReceivedRequest, line: Line) -> None:
        if item.method == "PATCH":
            if not leads[0]:
                too_early.append(item.path)
            written.set()
            await line.answer({"kind": "ConfigMap", "metadata": {"resourceVersion": "1"}})
        else:
            await none_there(item, line)

    def asked() -> bool:
        nonlocal looks
        looks += 1
        return leads[0]

    async with _kept(play, "one", leads=asked) as kept:
        for _ in range(3):
            before = looks
            kept.look()
            while looks == before:
                await asyncio.sleep(0)
        assert (kept.remarks(), looks < 20) == ((), True)
        leads[0] = True
        kept.look()
        await written.wait()
    assert too_early == []
