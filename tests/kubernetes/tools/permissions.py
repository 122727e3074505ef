"""Grants of roles, and requests in the API server's audit log, in the same form."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from http import HTTPStatus
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True, order=True)
class Grant:
    """One verb on one resource, such as `workloads/status`; for one namespace or name, or for all ("")."""

    verb: str
    group: str
    resource: str
    namespace: str = ""
    name: str = ""

    def covers(self, asked: "Grant") -> bool:
        """Return whether this grant covers a request."""
        mine, theirs = (self.verb, self.group, self.resource), (asked.verb, asked.group, asked.resource)
        return mine == theirs and self.namespace in ("", asked.namespace) and self.name in ("", asked.name)

    def __str__(self) -> str:
        of = f"{self.resource}.{self.group}" if self.group else self.resource
        return " ".join((self.verb, of, *filter(None, (self.namespace, self.name))))


def granted(documents: Iterable[Mapping[str, Any]]) -> Iterator[Grant]:
    """Yield the grants of the roles among these manifests."""
    for document in documents:
        if document["kind"] not in ("Role", "ClusterRole"):
            continue
        namespace = document["metadata"].get("namespace", "")
        for rule in document["rules"]:
            for group in rule["apiGroups"]:
                for resource in rule["resources"]:
                    for verb in rule["verbs"]:
                        for name in rule.get("resourceNames", [""]):
                            yield Grant(verb, group, resource, namespace, name)


@dataclass(frozen=True, slots=True)
class AuditedRequest:
    """A request for a resource, and whether it was granted."""

    grant: Grant
    is_allowed: bool


def lines(log: Path, word: str = "") -> Iterator[dict[str, Any]]:
    """Yield the entries of an audit log that contain a word, without an unfinished last line."""
    whole, _, _ = log.read_text("utf-8").rpartition("\n")
    return (json.loads(line) for line in whole.splitlines() if word in line)


def asked(log: Path, user: str) -> Iterator[AuditedRequest]:
    """Yield a user's requests to the API server that were for a resource."""
    for line in lines(log, user):
        if line["user"]["username"] != user or "objectRef" not in line:
            continue
        about = line["objectRef"]
        resource = "/".join(filter(None, (about["resource"], about.get("subresource", ""))))
        grant = Grant(
            line["verb"],
            about.get("apiGroup", ""),
            resource,
            about.get("namespace", ""),
            about.get("name", ""),
        )
        is_allowed = line["annotations"].get("authorization.k8s.io/decision") == "allow"
        yield AuditedRequest(grant, is_allowed)
        if line.get("responseStatus", {}).get("code") == HTTPStatus.CREATED and grant.verb == "patch":
            yield AuditedRequest(
                replace(grant, verb="create"), is_allowed=True
            )  # an apply of what was not there
