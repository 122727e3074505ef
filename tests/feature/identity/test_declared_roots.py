"""Tests of root changes by MeshRootCertificates: stages, evidence, and a created or given CA."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization

from certs.issuers.ca_folder import fingerprint_in
from certs.keys.leaf import fingerprint_of, is_signed_by_bundle
from tests.feature.identity.root_follower import Follower
from tests.feature.identity.test_enrolment import PORTS
from tests.feature.identity.test_identity import workload
from tests.feature.identity.test_root_change import ROTATE, follower, until
from tests.unit.certs.issuers.example_cas import Ca, ca

Serve = Callable[..., Awaitable[Any]]
MESH = (workload("one", host=1), workload("two", host=2))
NAMES = ("one.store.shop", "two.store.shop")
HELD = "MeshRootCertificates do not ask for"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check for changes more often."""
    monkeypatch.setattr("meshwright.controller.roots.change.LOOK_SECONDS", 0.1)
    monkeypatch.setattr("meshwright.controller.roots.declared.LOOK_SECONDS", 0.1)


def root(name: str, day: int, said: str = "") -> str:
    """Return a MeshRootCertificate whose Secret has its name."""
    return (
        "apiVersion: config.openservicemesh.io/v1alpha2\nkind: MeshRootCertificate\n"
        f"metadata: {{name: {name}, namespace: osm-system, creationTimestamp: '2026-11-0{day}T00:00:00Z'}}\n"
        "spec:\n  trustDomain: cluster.local\n"
        f"  provider: {{tresor: {{ca: {{secretRef: {{name: {name}}}}}}}}}\n"
        f"{said and f'  {said}'}\n"
    )


def declare(server: Any, *roots: str) -> None:
    """Replace the MeshRootCertificates of the mesh directory in one step."""
    (server.mesh / ".roots").write_text("---\n".join(roots))
    os.replace(server.mesh / ".roots", server.mesh / "roots.yaml")  # noqa: PTH105 - one step


async def told(server: Any, code: str) -> list[str]:
    """Return the problems with this code once there is one."""
    while True:
        problems = (await server.ask("GET", "/debug/policies"))["problems"]
        if result := [problem["expected"] for problem in problems if problem["code"] == code]:
            return result
        await asyncio.sleep(0.02)


async def held_by_objects(server: Any, stage: str) -> str:
    """Return the reason why objects hold a stage, once nothing else holds it."""
    while True:
        result = await server.ask("GET", ROTATE)
        also = result.get("also_waiting_for", [])
        if (
            result["stage"] == stage
            and not result["waiting_for"]
            and [e["part"] for e in also] == ["objects"]
        ):
            return str(also[0]["reason"])
        await asyncio.sleep(0.02)


async def running(server: Any, stack: AsyncExitStack) -> list[Follower]:
    """Run two proxies with their agents."""
    return [await stack.enter_async_context(follower(server, name).running()) for name in NAMES]


async def test_roles_of_root_certificates_lead_through_the_stages(serve: Serve) -> None:
    """A passive root is trusted, an active root signs, an inactive root goes, as in Open Service Mesh."""
    server = await serve(*MESH, root("first", 1), **PORTS)
    old = fingerprint_in(server.state / "ca")
    async with AsyncExitStack() as stack:
        one, _ = await running(server, stack)
        assert await server.ask("GET", ROTATE) == {"stage": None}
        with pytest.raises(
            AssertionError, match="MeshRootCertificates determine the roots, such as osm-system/first"
        ):
            await server.ask("POST", ROTATE, {})

        declare(server, root("second", 2, "role: passive"))
        assert await held_by_objects(server, "trusting") == (
            "the MeshRootCertificate of the root that signs is still active; this root "
            "signs until that object is passive or deleted"
        )
        new = (await server.ask("GET", ROTATE))["other"]
        assert fingerprint_in(server.state / "ca") == old

        server.write(*MESH, root("first", 1, "role: passive"))
        declare(server, root("second", 2, "role: active"))
        assert (
            "the MeshRootCertificate of the former root still exists; this root is trusted "
            "until that object is inactive or deleted"
        ) in await held_by_objects(server, "replacing")
        assert fingerprint_in(server.state / "ca") == new
        assert is_signed_by_bundle(one.chain, (server.state / "ca" / "ca.pem").read_bytes())

        server.write(*MESH, root("first", 1, "role: inactive"))
        await until(server, None)
        assert fingerprint_in(server.state / "ca") == new
        assert not (server.state / "ca.other").exists()
        await server.until(dict.fromkeys(NAMES, "connected"))


async def test_given_ca_replaces_the_servers_own_ca(serve: Serve, tmp_path: Path) -> None:
    """One edit introduces a CA in the Secret format of Open Service Mesh, and another an intermediate CA."""
    now, folder = datetime.now(UTC), tmp_path / "secrets"
    given, company = ca("given", now), ca("company", now)
    below = ca("below", now, company, path_length=0)
    as_osm(given, folder / "osm-system" / "bundle")
    server = await serve(*MESH, **PORTS, root_secrets=folder)
    async with AsyncExitStack() as stack:
        one, two = await running(server, stack)
        declare(server, root("bundle", 1))
        await signed_by(server, fingerprint_of(given.certificate))
        assert all(is_signed_by_bundle(item.chain, given.pem) for item in (one, two))
        assert one.mesh_roots.strip() == given.pem.strip()

        below.put(folder / "osm-system" / "below", company)
        declare(server, root("below", 2))
        await signed_by(server, fingerprint_of(below.certificate))
        assert is_signed_by_bundle(one.chain, company.pem)
        assert one.mesh_roots.strip() == company.pem.strip()
        await server.until(dict.fromkeys(NAMES, "connected"))
    held = "".join(path.read_text() for path in (server.state / "ca").iterdir() if path.suffix == ".pem")
    assert "PRIVATE" not in held


async def test_invalid_given_ca_leaves_the_ca_in_force_unchanged(serve: Serve, tmp_path: Path) -> None:
    """A wrong or missing key or a replaced CA is a problem of the object, without the key in its text."""
    now, folder = datetime.now(UTC), tmp_path / "secrets"
    good, other = ca("good", now), ca("other", now)
    place = folder / "osm-system" / "bundle"
    good.put(place)
    (place / "tls.key").write_bytes(other.key_pem)
    server = await serve(*MESH, root("bundle", 1), **PORTS, root_secrets=folder)
    old = fingerprint_in(server.state / "ca")
    (text,) = await told(server, "root-not-taken")
    assert f"CA key {place / 'tls.key'} does not match CA certificate {place / 'tls.crt'}" in text
    assert "PRIVATE" not in text
    (place / "tls.key").unlink()
    while "is missing in" not in text:
        (text,) = await told(server, "root-not-taken")
    assert (
        text == f"tls.key is missing in {place}, which must have the keys tls.crt, tls.key and "
        "ca.crt, or ca.crt and private.key"
    )
    assert (fingerprint_in(server.state / "ca"), await server.ask("GET", ROTATE)) == (old, {"stage": None})

    good.put(place)
    await signed_by(server, fingerprint_of(good.certificate))
    other.put(place)
    (text,) = await told(server, "root-not-taken")
    assert text == (
        f"{place} has another CA than the one that the mesh took from it before; put the new CA into a "
        "Secret of another name, with its own MeshRootCertificate"
    )
    assert fingerprint_in(server.state / "ca") == fingerprint_of(good.certificate)


async def test_root_deleted_before_it_signs_is_withdrawn(serve: Serve) -> None:
    """The deletion of all objects withdraws the new root, and the command can rotate again."""
    server = await serve(*MESH, root("first", 1), **PORTS)
    old = fingerprint_in(server.state / "ca")
    async with AsyncExitStack() as stack:
        one, _ = await running(server, stack)
        declare(server, root("second", 2, "intent: passive"))
        await held_by_objects(server, "trusting")
        server.write(*MESH)
        declare(server, "")
        await until(server, None)
        assert fingerprint_in(server.state / "ca") == old
        assert is_signed_by_bundle(one.chain, one.mesh_roots)
        await server.ask("POST", ROTATE, {})
        await until(server, None)
        assert fingerprint_in(server.state / "ca") != old


async def test_exchanged_roles_switch_the_signing_root(serve: Serve) -> None:
    """While both roots are trusted, the roles can be exchanged repeatedly."""
    server = await serve(*MESH, **PORTS)
    old = fingerprint_in(server.state / "ca")

    async def signs(first: str, second: str, expected: str) -> None:
        declare(server, root("first", 1, f"role: {first}"), root("second", 2, f"role: {second}"))
        await held_by_objects(server, "replacing")
        while fingerprint_in(server.state / "ca") != expected:
            await asyncio.sleep(0.02)
        await held_by_objects(server, "replacing")

    async with AsyncExitStack() as stack:
        await running(server, stack)
        declare(server, root("first", 1), root("second", 2))
        await held_by_objects(server, "trusting")
        new = (await server.ask("GET", ROTATE))["other"]
        for first, second, expected in (
            ("passive", "active", new),
            ("active", "passive", old),
            ("passive", "active", new),
        ):
            await signs(first, second, expected)
        declare(server, root("second", 2))
        await until(server, None)
        assert fingerprint_in(server.state / "ca") == new


async def test_external_ca_refuses_declared_roots_with_its_location(serve: Serve, tmp_path: Path) -> None:
    """The CA's files belong to the operator, so the problem refers to their directory."""
    ca("company", datetime.now(UTC)).put(tmp_path / "authority")
    server = await serve(*MESH, root("first", 1), **PORTS, authority_directory=tmp_path / "authority")
    (text,) = await told(server, "root-not-taken")
    assert text.startswith("this server does not own the root; rotate the CA in ")


def as_osm(made: Ca, folder: Path) -> None:
    """Write a CA in the Secret format of Open Service Mesh, with a PKCS #8 key and its own file names."""
    folder.mkdir(parents=True)
    (folder / "ca.crt").write_bytes(made.pem)
    form = serialization.PrivateFormat.PKCS8
    key = made.key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
    (folder / "private.key").write_bytes(key)
    (folder / "expiration").write_text("2033-04-20T00:00:00Z")


async def signed_by(server: Any, expected: str) -> None:
    """Return once a root signs and no change is in progress."""
    while fingerprint_in(server.state / "ca") != expected:
        await asyncio.sleep(0.02)
    await until(server, None)
