"""Fixtures of a real OpenBao for all tests here, with a separate PKI for each test."""

import itertools
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from certs.issuers.exchanges import Exchanges
from certs.issuers.vault.issuer import VaultIssuer, VaultPki
from certs.issuers.vault.login import ByToken, Login
from certs.keys.bundle import TrustBundle
from meshwright.mesh.names import TrustDomain
from tests.tools.openbao import OpenBao, openbao, program

DOMAIN = TrustDomain("mesh.example")
ROLE = {
    "allow_any_name": True,
    "enforce_hostnames": False,
    "cn_validations": ["disabled"],
    "allowed_uri_sans": ["spiffe://mesh.example/*"],
    "key_type": "any",
    "max_ttl": "72h",
}
_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def bao(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenBao]:
    """The OpenBao of all tests."""
    if program() is None:
        text = "there is no OpenBao: `make openbao` makes one"
        if os.environ.get("MESHWRIGHT_PARTS") == "required":
            pytest.fail(text)
        pytest.skip(text)
    with openbao(tmp_path_factory.mktemp("openbao")) as started:
        yield started


@dataclass(frozen=True)
class Pki:
    """A PKI with a role `mesh`, and a policy `mesh-N` that permits the role to sign."""

    bao: OpenBao
    mount: str
    folder: Path

    def role(self, **told: object) -> None:
        """Change options of the role."""
        self.bao("POST", f"{self.mount}/roles/mesh", {**ROLE, **told})

    def file(self, name: str, content: str) -> Path:
        """Write a file that only its owner can read."""
        path = self.folder / name
        path.write_text(content)
        path.chmod(0o600)
        return path

    def token(self, **told: object) -> str:
        """Return a token that permits the role to sign."""
        made: Any = self.bao("POST", "auth/token/create", {"policies": [self.mount], **told})
        return str(made["auth"]["client_token"])

    def issuer(self, login: Login | None = None, role: str = "mesh") -> VaultIssuer:
        """Return an issuer that has fetched the roots."""
        login = login or ByToken(self.file("token", self.token()))
        pki = VaultPki(self.mount, role)
        api = replace(self.bao.api, exchanges=Exchanges())
        return VaultIssuer.open(api, login, pki, DOMAIN, TrustBundle.from_pems([]))


@pytest.fixture
def pki(bao: OpenBao, tmp_path: Path) -> Pki:
    """A PKI with its own root."""
    made = Pki(bao, f"pki-{next(_numbers)}", tmp_path)
    bao("POST", f"sys/mounts/{made.mount}", {"type": "pki", "config": {"max_lease_ttl": "87600h"}})
    root = {"common_name": made.mount, "ttl": "87600h", "key_type": "ec", "key_bits": 256}
    bao("POST", f"{made.mount}/root/generate/internal", root)
    made.role()
    policy = f'path "{made.mount}/sign/*" {{ capabilities = ["create", "update"] }}'
    bao("PUT", f"sys/policies/acl/{made.mount}", {"policy": policy})
    return made
