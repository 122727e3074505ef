"""MeshRootCertificates change the root: by stages, on evidence, with a CA that is made or given."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization

from certs.issuers.root import fingerprint_in
from certs.keys.leaf import fingerprint_of, stands_below
from tests.feature.identity.following import Follower
from tests.feature.identity.test_enrolment import PORTS
from tests.feature.identity.test_identity import workload
from tests.feature.identity.test_root_change import ROTATE, follower, until
from tests.unit.certs.issuers.cas import Ca, ca

Serve = Callable[..., Awaitable[Any]]
MESH = (workload("one", host=1), workload("two", host=2))
NAMES = ("one.store.shop", "two.store.shop")
HELD = "MeshRootCertificates do not ask for"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look more often."""
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
    """Have the mesh directory declare these, at once."""
    (server.mesh / ".roots").write_text("---\n".join(roots))
    os.replace(server.mesh / ".roots", server.mesh / "roots.yaml")  # noqa: PTH105 - one step


async def told(server: Any, code: str) -> list[str]:
    """Return what is said of objects by a code, once something is."""
    while True:
        problems = (await server.ask("GET", "/debug/policies"))["problems"]
        if found := [each["expected"] for each in problems if each["code"] == code]:
            return found
        await asyncio.sleep(0.02)


async def held_by_objects(server: Any, stage: str) -> str:
    """Return why objects hold a stage back, once nobody else does."""
    while True:
        found = await server.ask("GET", ROTATE)
        also = found.get("also_waiting_for", [])
        if found["stage"] == stage and not found["waiting_for"] and [e["part"] for e in also] == ["objects"]:
            return str(also[0]["reason"])
        await asyncio.sleep(0.02)


async def running(server: Any, stack: AsyncExitStack) -> list[Follower]:
    """Have two proxies and their agents follow."""
    return [await stack.enter_async_context(follower(server, name).running()) for name in NAMES]


async def test_the_roles_lead_through_the_stages(serve: Serve) -> None:
    """As in Open Service Mesh: passive is trusted, active signs, inactive goes; each when it is wanted."""
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
        assert stands_below(one.chain, (server.state / "ca" / "ca.pem").read_bytes())

        server.write(*MESH, root("first", 1, "role: inactive"))
        await until(server, None)
        assert fingerprint_in(server.state / "ca") == new
        assert not (server.state / "ca.other").exists()
        await server.until(dict.fromkeys(NAMES, "connected"))


async def test_a_ca_that_is_given_takes_the_place_of_ours_by_one_edit(serve: Serve, tmp_path: Path) -> None:
    """As Open Service Mesh's Secret has it; then an intermediate below a company's root, as of others."""
    now, folder = datetime.now(UTC), tmp_path / "secrets"
    given, company = ca("given", now), ca("company", now)
    below = ca("below", now, company, path_length=0)
    as_osm(given, folder / "osm-system" / "bundle")
    server = await serve(*MESH, **PORTS, root_secrets=folder)
    async with AsyncExitStack() as stack:
        one, two = await running(server, stack)
        declare(server, root("bundle", 1))
        await signed_by(server, fingerprint_of(given.certificate))
        assert all(stands_below(each.chain, given.pem) for each in (one, two))
        assert one.mesh_roots.strip() == given.pem.strip()

        below.put(folder / "osm-system" / "below", company)
        declare(server, root("below", 2))
        await signed_by(server, fingerprint_of(below.certificate))
        assert stands_below(one.chain, company.pem)
        assert one.mesh_roots.strip() == company.pem.strip()
        await server.until(dict.fromkeys(NAMES, "connected"))
    held = "".join(each.read_text() for each in (server.state / "ca").iterdir() if each.suffix == ".pem")
    assert "PRIVATE" not in held


async def test_what_is_bad_leaves_the_ca_in_force_alone(serve: Serve, tmp_path: Path) -> None:
    """A key that does not fit, another CA in the place of one: said of the object, without the key."""
    now, folder = datetime.now(UTC), tmp_path / "secrets"
    good, other = ca("good", now), ca("other", now)
    place = folder / "osm-system" / "bundle"
    good.put(place)
    (place / "tls.key").write_bytes(other.key_pem)
    server = await serve(*MESH, root("bundle", 1), **PORTS, root_secrets=folder)
    old = fingerprint_in(server.state / "ca")
    (said,) = await told(server, "root-not-taken")
    assert f"CA key {place / 'tls.key'} does not match CA certificate {place / 'tls.crt'}" in said
    assert "PRIVATE" not in said
    (place / "tls.key").unlink()
    while "is missing in" not in said:
        (said,) = await told(server, "root-not-taken")
    assert (
        said == f"tls.key is missing in {place}, which must have the keys tls.crt, tls.key and "
        "ca.crt, or ca.crt and private.key"
    )
    assert (fingerprint_in(server.state / "ca"), await server.ask("GET", ROTATE)) == (old, {"stage": None})

    good.put(place)
    await signed_by(server, fingerprint_of(good.certificate))
    other.put(place)
    (said,) = await told(server, "root-not-taken")
    assert said == (
        f"{place} has another CA than the one that the mesh took from it before; put the new CA into a "
        "Secret of another name, with its own MeshRootCertificate"
    )
    assert fingerprint_in(server.state / "ca") == fingerprint_of(good.certificate)


async def test_one_that_goes_before_it_signs_is_forgotten(serve: Serve) -> None:
    """The root that was to be trusted is taken back, also by a deletion of all; commands rule again."""
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
        assert stands_below(one.chain, one.mesh_roots)
        await server.ask("POST", ROTATE, {})
        await until(server, None)
        assert fingerprint_in(server.state / "ca") != old


async def test_roles_that_are_exchanged_again_turn_the_roots(serve: Serve) -> None:
    """As often as anybody wants, while both are trusted."""
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


async def test_whose_ca_it_is_not_ours_to_change_says_so(serve: Serve, tmp_path: Path) -> None:
    """The authority's files are the company's: the object is told where they are."""
    ca("company", datetime.now(UTC)).put(tmp_path / "authority")
    server = await serve(*MESH, root("first", 1), **PORTS, authority_directory=tmp_path / "authority")
    (said,) = await told(server, "root-not-taken")
    assert said.startswith("this server does not own the root; rotate the CA in ")


def as_osm(made: Ca, folder: Path) -> None:
    """Write a CA as Open Service Mesh's Secret has it, whose key is PKCS #8 and whose keys are its own."""
    folder.mkdir(parents=True)
    (folder / "ca.crt").write_bytes(made.pem)
    form = serialization.PrivateFormat.PKCS8
    key = made.key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
    (folder / "private.key").write_bytes(key)
    (folder / "expiration").write_text("2033-04-20T00:00:00Z")


async def signed_by(server: Any, expected: str) -> None:
    """Return once a root signs, and nothing is changed any more."""
    while fingerprint_in(server.state / "ca") != expected:
        await asyncio.sleep(0.02)
    await until(server, None)
