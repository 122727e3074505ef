"""Tests of the README's commands for a cluster, and those of docs/start/kubernetes.md.

They are few, both pages have the same ones, and the files, images and objects that they name exist.
"""

import itertools
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from demo.kubernetes.newcomer import MANIFESTS, steps
from demo.kubernetes.plane import Images
from demo.kubernetes.store import applications
from meshwright.cli.main import app
from tests.tools import libyaml

ROOT = Path(__file__).parents[3]
README = (ROOT / "README.md").read_text("utf-8")
PAGE = (ROOT / "docs" / "start" / "kubernetes.md").read_text("utf-8")
MOST = 12
"""The commands that a newcomer types at most, images included, up to the first request through the mesh."""
OSM = "$OSM/"
"""The prefix of the paths of Open Service Mesh's own manifests."""
POLICIES = ROOT / "demo" / "manifests" / "access" / "traffic-access-v1.yaml"
"""Our form of the policies that the README applies from there."""


def _section(text: str, heading: str) -> str:
    return text.partition(heading)[2].partition("\n##")[0]


def _blocks(language: str, text: str) -> list[str]:
    """Return the code blocks of a page that are in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def _joined(text: str) -> str:
    return text.replace("\\\n", "")


def _commands(block: str) -> list[str]:
    """Return the commands of a block of shell, without comments, each on one line."""
    lines = (shlex.join(shlex.split(line, comments=True)) for line in _joined(block).splitlines())
    return [line for line in lines if line]


def _readme() -> list[str]:
    (block,) = _blocks("sh", _section(README, "### Kubernetes\n"))
    return _commands(block)


def _files(commands: list[str]) -> list[str]:
    """Return the files named by `-f`. `kubectl logs` is left out, because its `-f` means "follow"."""
    words = [shlex.split(command) for command in commands if " logs " not in command]
    return [after for item in words for word, after in itertools.pairwise(item) if word == "-f"]


def test_newcomer_types_twelve_commands_at_most() -> None:
    """This is from the images to the first answered request; no command of the block hides a second one."""
    commands = _readme()
    assert len(commands) <= MOST
    assert [command for command in commands if re.search(r"&&|;|\|\|", command)] == []


def test_files_named_in_the_readme_exist() -> None:
    """These are the chart, the Dockerfile and the manifest of namespaces.

    All others are Open Service Mesh's.
    """
    commands = _readme()
    ours = [file for file in _files(commands) if not file.startswith(OSM)]
    (chart,) = [shlex.split(command)[3] for command in commands if command.startswith("helm install ")]
    assert ours == ["docs/examples/bookstore-namespaces.yaml"]
    assert [
        item for item in ["Dockerfile", *ours, f"{chart}/Chart.yaml"] if not (ROOT / item).is_file()
    ] == []


def test_images_in_the_readme_are_those_of_the_chart() -> None:
    """They are built and loaded under the chart's default names, without any `--set`."""
    values = libyaml.load((ROOT / "deploy" / "chart" / "meshwright" / "values.yaml").read_text("utf-8"))
    about = libyaml.load((ROOT / "deploy" / "chart" / "meshwright" / "Chart.yaml").read_text("utf-8"))
    wanted = [f"{values[each]['repository']}:{about['appVersion']}" for each in ("image", "proxyImage")]
    words = [shlex.split(item) for item in _readme()]
    assert [word[word.index("-t") + 1] for word in words if word[:2] == ["docker", "build"]] == wanted
    assert [word[3:] for word in words if word[:2] == ["kind", "load"]] == [wanted]
    assert [word for word in words if "--set" in word] == []


def test_bookstore_namespaces_are_those_of_its_applications() -> None:
    """Each has the label for the webhook, and none is missing."""
    text = (ROOT / "docs" / "examples" / "bookstore-namespaces.yaml").read_text("utf-8")
    made = {item["metadata"]["name"]: item["metadata"]["labels"] for item in libyaml.load_all(text)}
    wanted = {application["metadata"]["namespace"] for application in applications()}
    assert made == {item: {"meshwright.dev/inject": "true"} for item in wanted}


def test_readme_commands_name_existing_bookstore_programs() -> None:
    """These are the Deployment of the rollout and the log, and both ends of `explain`."""
    result = {_named(application) for application in applications()}
    typed = " ".join(_readme())
    (caller,) = re.findall(r"--from (\S+)", typed)
    ((service, port),) = re.findall(r"--to (\S+):(\d+)", typed)
    logs = re.findall(r"-n (\S+) logs (?:-f )?deployment/(\S+)", typed)
    waited = re.findall(r"-n (\S+) rollout status deployment (\S+)", typed)
    assert logs == [("bookbuyer", "bookbuyer")] * 2
    assert waited == [("bookbuyer", "bookbuyer")]
    assert {("Deployment", "/".join(waited[0])), ("ServiceAccount", caller), ("Service", service)} <= result
    (store,) = [application for application in applications() if _named(application) == ("Service", service)]
    assert [str(inbound_port["port"]) for inbound_port in store["spec"]["ports"]] == [port]


def _named(document: dict[str, Any]) -> tuple[str, str]:
    return document["kind"], f"{document['metadata']['namespace']}/{document['metadata']['name']}"


def test_kubernetes_page_has_the_commands_of_the_readme() -> None:
    """docs/start/kubernetes.md shows the README's commands in their order, with their output."""
    typed = re.findall(r"^\$ (.*)$", _joined(_transcript()), re.MULTILINE)
    assert _commands("\n".join(typed)) == _readme()


def _transcript() -> str:
    section = _section(PAGE, "### Open Service Mesh's bookstore in twelve commands\n")
    block, _ = _blocks("console", section)
    return block


def test_explain_prints_the_text_of_the_pages(tmp_path: Path) -> None:
    """The README's question about the bookstore has status 1 and the page's text.

    With the policies, the status is 0.
    """
    (typed,) = [item for item in _readme() if " explain " in item]
    words = shlex.split(typed.partition(" meshwright ")[2])
    asked = [*words[:1], "--mesh", str(tmp_path), *words[1:]]
    (tmp_path / "bookstore.json").write_text(json.dumps({"kind": "List", "items": list(_running())}))
    denied = CliRunner().invoke(app, asked)
    assert denied.exit_code == 1
    text = (
        _transcript()
        .partition("GET /buy-a-book/new\n")[2]
        .partition("  The sidecars enforce this decision")[0]
    )
    assert _without_places(
        denied.stdout.partition("  Whether sidecars enforce this decision was not")[0]
    ) == _without_places(text)
    assert '"No TrafficTarget has the destination bookstore/bookstore."' in " ".join(README.split())
    (tmp_path / "policies.yaml").write_text(POLICIES.read_text("utf-8"))
    assert CliRunner().invoke(app, asked).exit_code == 0


def _without_places(text: str) -> list[str]:
    """Return lines of `explain` without those that say where an object was read."""
    return [line for line in text.splitlines() if not line.startswith("    Service ")]


def _running() -> Iterator[dict[str, Any]]:
    """Yield the bookstore's objects, with a ready Pod in the place of each workload."""
    for number, application in enumerate(applications()):
        if "template" not in application.get("spec", {}):
            yield application
            continue
        template, uuid = application["spec"]["template"], f"proxy-{number}"
        labels = {**template["metadata"]["labels"], "meshwright.dev/proxy-uuid": uuid}
        named = {"name": application["metadata"]["name"], "namespace": application["metadata"]["namespace"]}
        yield {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {**named, "uid": uuid, "labels": labels},
            "spec": template["spec"],
            "status": {
                "phase": "Running",
                "podIP": f"10.0.0.{number + 1}",
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }


@pytest.mark.parametrize("name", ["shop.yaml", "allow.yaml"])
def test_shop_manifests_are_in_their_own_namespace(name: str) -> None:
    """The namespace comes first, with its label, and all other objects are in it."""
    result = list(libyaml.load_all((MANIFESTS / name).read_text("utf-8")))
    if name == "shop.yaml":
        first = result.pop(0)
        assert (first["kind"], first["metadata"]) == (
            "Namespace",
            {"name": "shop", "labels": {"meshwright.dev/inject": "true"}},
        )
    assert {item["metadata"]["namespace"] for item in result} == {"shop"}


def test_demo_runs_the_commands_of_the_kubernetes_page() -> None:
    """`make demo-kubernetes` adds only its own images and a time limit."""
    section = _section(PAGE, "### From an empty cluster to a denied request explained\n")
    (block,) = _blocks("sh", section)
    images = Images("demo.local/meshwright:v1", "demo.local/meshwright:v1")
    walk = [step.line for step in steps(images)]
    typed = [item.replace(f" --set {images.values()}", "").replace(" --timeout=390s", "") for item in walk]
    assert _commands(block) == [shlex.join(shlex.split(item)) for item in typed]
