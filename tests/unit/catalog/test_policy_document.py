"""Tests of docs/policy/policy.md: its manifests are valid, and its calls are decided as documented."""

import re
import shlex
from pathlib import Path

import pytest

from catalog.oracle.decide import Decision, Request, decide
from catalog.store.view import MeshSettings, View
from meshwright.admin.pages.calls.explain import read_request
from meshwright.providers.directory.manifests import Manifests

DOCUMENT = (Path(__file__).parents[3] / "docs" / "policy" / "policy.md").read_text()
SECTIONS = {part.partition("\n")[0]: part for part in DOCUMENT.split("\n## ")[1:]}
BASE = "The mesh of the examples"
BLOCK = re.compile(r"```(\w+)(?: refused=(\w+))?\n(.*?)```", re.DOTALL)


def blocks(section: str, language: str) -> list[tuple[str, str]]:
    """Return the code of the expected problem, and the text, of each block in a language."""
    return [(code, text) for name, code, text in BLOCK.findall(SECTIONS[section]) if name == language]


EXAMPLES = [
    (section, command, answer)
    for section in SECTIONS
    for _, text in blocks(section, "console")
    for command, answer in re.findall(r"^\$ meshwright explain (.*)\n(.*)$", text, re.MULTILINE)
]


@pytest.mark.parametrize("section", [name for name in SECTIONS if blocks(name, "yaml")])
def test_documented_manifests_have_only_the_announced_problem(section: str) -> None:
    """A block marked `refused` has exactly that problem, and the others have none."""
    for refused, text in blocks(section, "yaml"):
        manifests = Manifests().apply("example.yaml", text)
        assert [problem.code for problem in manifests.problems()] == ([refused] if refused else [])


@pytest.mark.parametrize(("section", "command", "answer"), EXAMPLES)
def test_documented_calls_are_decided_as_documented(section: str, command: str, answer: str) -> None:
    """The mesh has the common manifests of the document and those of the section."""
    contents = {
        f"{name}.yaml": "---\n".join(text for _, text in blocks(name, "yaml")) for name in {BASE, section}
    }
    state = Manifests().apply_all(contents)
    mesh = View.build(state.objects(), MeshSettings())
    assert shown(decide(mesh, request_of(command)), answer) == answer


def request_of(command: str) -> Request:
    """Read a command line of `meshwright explain` as the command does."""
    words = shlex.split(command)
    options = {"--mesh": "", "--from": "", "--to": ""}
    headers, plain = [], []
    while words:
        word = words.pop(0)
        if word in options:
            options[word] = words.pop(0)
        elif word == "--header":
            headers.append(words.pop(0))
        else:
            plain.append(word)
    method, path = (*plain, "GET", "/")[:2] if len(plain) != 1 else (plain[0], "/")
    return read_request(
        {"from": options["--from"], "to": options["--to"], "method": method, "path": path}, headers
    )


def shown(decision: Decision, like: str) -> str:
    """Return a decision in the notation of the document, with shares if the document gives them."""
    value = decision.answer.value
    if " by " not in like:
        return value
    return f"{value} by " + ", ".join(f"{item.service.name} {item.weight}" for item in decision.shares)


def test_every_kind_has_manifests_and_calls_as_examples() -> None:
    """Only the refused kind UDPRoute has no calls."""
    kinds = ["TrafficTarget", "HTTPRouteGroup", "TCPRoute", "TrafficSplit", "MeshConfig", "UDPRoute"]
    for kind in kinds:
        section = next(name for name in SECTIONS if kind in name)
        assert blocks(section, "yaml")
        assert blocks(section, "console") or kind == "UDPRoute"
    assert len(EXAMPLES) == 28
