"""Service accounts with chosen permissions, and their kubeconfigs."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.kubernetes.tools.kubectl import Kubectl
from tools.real_parts.cluster import RunningCluster
from tools.real_parts.flags import ISSUER

Rule = Mapping[str, Sequence[str]]
"""One rule of a role: `apiGroups`, `resources`, `verbs`."""

_RBAC: Final = "rbac.authorization.k8s.io"
_SIGNER: Final = "tokens"
_GRACE: Final = 60
"""Seconds for which the API takes a token that has expired: clocks differ."""


@dataclass(frozen=True, slots=True)
class Account:
    """A service account, and the folder with its kubeconfigs and its token."""

    cluster: RunningCluster
    namespace: str
    name: str
    uid: str
    folder: Path

    @property
    def user(self) -> str:
        """Return the account's user name."""
        return f"system:serviceaccount:{self.namespace}:{self.name}"

    @property
    def kubeconfig(self) -> Path:
        """Write a kubeconfig with a token that is valid for an hour; return its path."""
        return self._written("kubeconfig", {"token": self.token(3600)})

    @property
    def token_file(self) -> Path:
        """Return the token file of `kubeconfig_by_file`, which the test writes."""
        return self.folder / "token"

    @property
    def kubeconfig_by_file(self) -> Path:
        """Write a kubeconfig with a token file, like a Pod's; return its path."""
        return self._written("kubeconfig-by-file", {"tokenFile": str(self.token_file)})

    def token(self, seconds: float) -> str:
        """Return a token with this validity; the API server issues none below ten minutes.

        It is signed with the API server's key and has the same claims as its own tokens. The API server
        caches for ten seconds that a token was valid.
        """
        now = int(time.time())
        who = {"namespace": self.namespace, "serviceaccount": {"name": self.name, "uid": self.uid}}
        claims: dict[str, Any] = {"iss": ISSUER, "aud": [ISSUER], "sub": self.user, "kubernetes.io": who}
        claims |= {"iat": now, "nbf": now - 3600, "exp": int(now + seconds) - _GRACE}
        return self.cluster.keys.token(_SIGNER, claims)

    def _written(self, name: str, user: Mapping[str, object]) -> Path:
        path = self.folder / name
        self.cluster.keys.kubeconfig_of(path, self.name, self.cluster.server, user)
        return path


@dataclass(frozen=True, slots=True)
class Accounts:
    """Factory of service accounts in a namespace."""

    cluster: RunningCluster
    kubectl: Kubectl
    folder: Path

    def make(self, name: str, rules: Sequence[Rule], *, everywhere: bool = True) -> Account:
        """Make an account with these rules, for the whole cluster or for its own namespace only."""
        self.kubectl.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}})
        account = self.found(name)
        self.allow(account, rules, everywhere=everywhere)
        return account

    def found(self, name: str) -> Account:
        """Return an existing account."""
        metadata = self.kubectl.get("serviceaccount", name)["metadata"]
        folder = self.folder / metadata["namespace"] / name
        folder.mkdir(parents=True, exist_ok=True)
        return Account(self.cluster, metadata["namespace"], name, metadata["uid"], folder)

    def allow(self, account: Account, rules: Sequence[Rule], *, everywhere: bool = True) -> None:
        """Replace an account's permissions."""
        kind = "ClusterRole" if everywhere else "Role"
        metadata = {"name": f"{account.namespace}-{account.name}" if everywhere else account.name}
        subject = {"kind": "ServiceAccount", "name": account.name, "namespace": account.namespace}
        role = {"kind": kind, "metadata": metadata, "rules": [dict(rule) for rule in rules]}
        reference = {"apiGroup": _RBAC, "kind": kind, "name": metadata["name"]}
        bound = {
            "kind": f"{kind}Binding",
            "metadata": metadata,
            "roleRef": reference,
            "subjects": [subject],
        }
        self.kubectl.apply(*({"apiVersion": f"{_RBAC}/v1", **item} for item in (role, bound)))
        if rules:
            self._until_allowed(account, rules[-1])

    def _until_allowed(self, account: Account, rule: Rule) -> None:
        """Wait until the API server applies a rule, which it does with a delay."""
        asked = {"verb": rule["verbs"][0], "group": rule["apiGroups"][0], "resource": rule["resources"][0]}
        resource, _, subresource = asked["resource"].partition("/")
        where = {"namespace": account.namespace, "name": (*rule.get("resourceNames", ()), "")[0]}
        attributes = asked | where | {"resource": resource, "subresource": subresource}
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {"user": account.user, "resourceAttributes": attributes},
        }
        self.kubectl.until_answered(review, lambda answer: answer["status"].get("allowed"))
