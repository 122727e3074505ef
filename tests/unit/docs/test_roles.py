"""Tests of the roles in docs/kubernetes: the table of them, and the manifest for several servers."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from meshwright.controller.sharing.migration.unmoved_claim import CLAIM
from meshwright.records.kubernetes.definition import DEFINITION
from meshwright.records.kubernetes.store import CUSTODY, LEASE
from tests.tools import libyaml

DOCS = Path(__file__).parents[3] / "docs"
FILES = (
    "rbac.yaml",
    "webhook.yaml",
    "injection.yaml",
    "joining.yaml",
    "secrets.yaml",
    "gateway.yaml",
    "cert-manager.yaml",
    "shared-store.yaml",
    "cni.yaml",
)


def test_page_has_each_rule_of_our_roles() -> None:
    """The rules are in their order, word for word, and there is no other."""
    page = (DOCS / "start" / "kubernetes.md").read_text("utf-8")
    table = page.partition("| role | API group |")[2].splitlines()[2:]
    assert [line for line in table if line] == [row for file in FILES for row in _rows(file)]


def test_manifest_has_what_servers_share() -> None:
    """The definition is a literal copy. The Secret is empty, and the role reaches no other Secret."""
    definition, secret, role, _ = libyaml.load_all(
        (DOCS / "kubernetes" / "shared-store.yaml").read_text("utf-8")
    )
    assert definition == _plain(DEFINITION)
    assert (secret["metadata"]["name"], secret.get("data")) == (CUSTODY, None)
    assert [rule.get("resourceNames") for rule in role["rules"]] == [
        [CUSTODY],
        None,
        None,
        [LEASE],
        [CLAIM],
    ]


def _rows(file: str) -> Iterator[str]:
    for role in libyaml.load_all((DOCS / "kubernetes" / file).read_text("utf-8")):
        named = f"{role['kind']} `{role['metadata']['name']}`"
        for number, rule in enumerate(role.get("rules", ())):
            cells = ("" if number else named, *_rule(rule))
            yield f"|{'|'.join(f' {cell} ' if cell else ' ' for cell in cells)}|"


def _rule(rule: dict[str, Any]) -> tuple[str, str, str]:
    (group,) = rule["apiGroups"]
    resources = ", ".join(f"`{resource}`" for resource in rule["resources"])
    of = "".join(f" named `{resource_name}`" for resource_name in rule.get("resourceNames", ()))
    return f"`{group}`" if group else "core", f"{resources}{of}", ", ".join(rule["verbs"])


def _plain(value: object) -> object:
    """Return a value with lists instead of tuples."""
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value
