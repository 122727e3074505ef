"""Tests of secrets as they are shown: name, serial and expiry."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

from meshwright.admin.pages.proxies.proxy import secrets
from meshwright.mesh.names import TrustDomain
from tests.tools.own_authority import own_authority
from xds.protocol.resources.resource import SECRET, Resource, ResourceName, Version
from xds.protocol.resources.snapshot import Snapshot


def _secret(name: str) -> Resource:
    return Resource(SECRET, ResourceName(name), Version("1"), b"SECRET", secret=True)


def test_secrets_are_shown_by_their_certificates(reading: Any, now: datetime, tmp_path: Path) -> None:
    """The service certificate and the root have serial and expiry; other secrets have only the name."""
    authority = own_authority(tmp_path, TrustDomain("cluster.local"), now)
    reading.the_trust_bundle = authority.trust_bundle()
    names = ("root-cert:cluster.local", "service-cert", "service-cert:shop/other")
    reading.the_snapshot = Snapshot.of(map(_secret, names))
    shown = secrets(reading, reading.the_proxies[0])
    root, store, other = shown
    assert root["not_after"] == authority.not_after.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    assert root["serial"]
    assert other == {
        "name": "service-cert:shop/other",
        "serial": None,
        "not_after": None,
        "text": "service-cert:shop/other",
    }
    assert store["text"] == "service-cert:shop/store, serial abc, valid until 2026-01-03T02:04:05.000Z"
    assert "SECRET" not in json.dumps(shown)
