"""Tests of `lint`, `diff` and `explain` with `--kubernetes`, with and without manifests."""

import json
from pathlib import Path

import pytest

from tests.feature.kubernetes.api_server import ApiServer
from tests.meshes import texts
from tests.tools.program import Program

pytestmark = pytest.mark.timeout(300)

SPLIT = texts.split("s", "store", ("none", 1))
MESH = texts.joined(
    texts.manifest("Namespace", "shop", namespace=""),
    *map(texts.account, ("store", "buyer")),
    texts.service("store", texts.port(80, 18080)),
    texts.workload("w-1", "10.0.0.1", app="store", account="store", uuid="one"),
    texts.workload("b-1", "10.0.0.2", app="buyer", account="buyer", uuid="two"),
    SPLIT,
)
TARGET = texts.joined(
    texts.route_group("all", texts.match("any", ".*")), texts.target("t", "buyer", "store", texts.http("all"))
)
ASK = ("--from", "shop/buyer", "--to", "shop/store:80")


@pytest.fixture
def at(api: ApiServer) -> tuple[str, ...]:
    """The options for a cluster that has a split without a backend."""
    api.apply(MESH)
    return ("--kubernetes", "--kubeconfig", str(api.kubeconfig))


def _written(program: Program, text: str) -> Path:
    folder = program.files / "policy"
    folder.mkdir(exist_ok=True)
    (folder / "policy.yaml").write_text(text)
    return folder


def test_lint_reports_problems_of_a_cluster_with_their_origin(program: Program, at: tuple[str, ...]) -> None:
    """The origin is the cluster's name and the resource version."""
    status, out, _ = program.run("lint", *at)
    assert status == 1
    assert "MW2011 the-cluster (resourceVersion " in out
    assert "shop/none does not exist" in out


def test_lint_of_manifests_reports_only_new_problems(program: Program, at: tuple[str, ...]) -> None:
    """Problems that the cluster already has are counted, and problems that the manifests fix are gone."""
    there = len(json.loads(program.run("lint", *at, "--json")[1]))
    fine = _written(program, TARGET)
    status, out, complaint = program.run("lint", *at, str(fine))
    assert (status, out, complaint) == (0, f"no problems found; {there} more already in the cluster\n", "")
    wrong = _written(program, TARGET.replace("TrafficTarget", "TrafficTraget"))
    status, out, _ = program.run("lint", *at, "--json", str(wrong))
    assert (status, {load["code"] for load in json.loads(out)}) == (1, {"MW1003"})
    mended = _written(program, texts.joined(TARGET, texts.service("none")))
    assert "MW2011" not in program.run("lint", *at, str(mended))[1]


def test_diff_reports_the_changes_of_manifests_against_a_cluster(
    program: Program, at: tuple[str, ...]
) -> None:
    """Objects missing in the manifests are not removed, and identical objects change nothing."""
    status, out, complaint = program.run("diff", *at, str(_written(program, TARGET)))
    assert (status, complaint) == (1, "")
    assert out.startswith("2 proxies would change, 0 would not\n")
    assert "two.buyer.shop" in out
    status, out, _ = program.run("diff", *at, str(_written(program, MESH)))
    assert (status, out) == (0, "0 proxies would change, 2 would not\n")


def test_explain_uses_a_cluster_with_or_without_manifests(program: Program, at: tuple[str, ...]) -> None:
    """The answer changes when manifests are applied on top."""
    assert program.run("explain", *at, *ASK)[0] == 1
    status, out, _ = program.run("explain", *at, "--mesh", str(_written(program, TARGET)), *ASK)
    assert status == 0
    assert "policy.yaml:" in out


@pytest.mark.parametrize(
    "command", [("lint",), ("diff", "policy"), ("explain", *ASK)], ids=lambda command: command[0]
)
def test_partly_unreadable_cluster_is_not_judged(
    command: tuple[str, ...], program: Program, api: ApiServer, at: tuple[str, ...]
) -> None:
    """Unread objects would look missing, so the status is 2, with the missing permission."""
    _written(program, TARGET)
    api.be(forbidden=["workloads", "services"])
    status, out, text = program.run(*command, *at)
    assert (status, out) == (2, "")
    assert "RBAC grants no `list` on `services` to the-tester" in text
    api.go()
    status, out, text = program.run(*command, *at)
    assert (status, out) == (2, "")
    assert "the-cluster" in text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--kubeconfig", "none"), "none"),
        (("--context", "another"), "another"),
        (("--namespace-selector", "a in b"), "'a in b' must be a label selector"),
        (("--namespaces", "Shop"), "'Shop' is not a namespace: must be 1 to 63 characters"),
    ],
)
def test_invalid_kubernetes_option_is_named(
    program: Program, at: tuple[str, ...], arguments: tuple[str, ...], said: str
) -> None:
    """The error is one message with status 2."""
    status, out, complaint = program.run("lint", *at, *arguments)
    assert (status, out, complaint.count("\n")) == (2, "", 0)
    assert said in complaint


def test_check_before_setup_examines_the_cluster(
    program: Program, api: ApiServer, at: tuple[str, ...]
) -> None:
    """The cluster's problems or its failure are reported, and no mesh directory is checked."""
    words = ("check", "--before", "--state", str(program.state), *at, "--json")
    _, out, _ = program.run(*words)
    lines = {check["name"]: check for check in json.loads(out)["checks"]}
    assert "mesh directory" not in lines
    assert (lines["cluster"]["status"], "MW2011" in lines["cluster"]["said"]) == ("failed", True)
    api.go()
    lines = {check["name"]: check for check in json.loads(program.run(*words)[1])["checks"]}
    assert (lines["cluster"]["status"], "the-cluster" in lines["cluster"]["said"]) == ("failed", True)
