"""`meshwright inject` and `uninject` on files: as written down, the same again, and back.

`UPDATE_GOLDEN=1` rewrites `cases/*.injected`.
"""

import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from certs.issuers.authority import CertificateAuthority
from meshwright.cli.main import app
from meshwright.mesh.names import TrustDomain
from tests.tools import libyaml
from tests.tools.command_runner import CliRunner, Result

CASES = Path(__file__).parent / "cases"
CONFIG = CASES / "config.yaml"
POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: pod}\nspec: {containers: [{name: a, image: b}]}\n"
NAMES = sorted(each.stem for each in CASES.glob("*.yaml") if each != CONFIG)


def run(*words: str, given: str | None = None) -> Result:
    """Run the command as a shell would, with what it is given on standard input."""
    return CliRunner().invoke(app, words, input=given)


def injected(text: str, *more: str) -> Result:
    """Inject what is given on standard input, as the configuration of the cases says."""
    return run("inject", "-f", "-", "--config", str(CONFIG), *more, given=text)


@pytest.mark.parametrize("name", NAMES)
def test_manifests_come_out_as_written_down(name: str) -> None:
    """With what is said besides; and the same where they come in with sidecars."""
    found = run("inject", "-f", str(CASES / f"{name}.yaml"), "--config", str(CONFIG))
    assert found.exit_code == 0, found.exception
    for suffix, said in (("injected", found.stdout), ("said", found.stderr)):
        file = CASES / f"{name}.{suffix}"
        if os.environ.get("UPDATE_GOLDEN"):
            file.write_text(said)
        assert said == file.read_text()
    assert injected(found.stdout).stdout == found.stdout


@pytest.mark.parametrize("name", NAMES)
def test_the_way_back_gives_what_their_authors_wrote(name: str) -> None:
    """Word for word as values; untouched documents as text."""
    text = (CASES / f"{name}.yaml").read_text()
    back = run("uninject", "-f", str(CASES / f"{name}.injected"))
    assert list(libyaml.load_all(back.stdout)) == list(libyaml.load_all(text))
    assert run("uninject", "-f", "-", given=text).stdout == text


def test_no_golden_file_is_left_over() -> None:
    """Of a case that is no more."""
    kept = {each.stem for suffix in ("injected", "said") for each in CASES.glob(f"*.{suffix}")}
    assert kept == set(NAMES)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n# nothing\n---\n",
        "a: 1\n---\n\n",
        "- 1\n- two\n",
        "%YAML 1.2\n---\nkind:   Service   # as it is\n...\n---\nx: |\n  --- no marker\n",
        "kind: Service\r\nmetadata: {}\r\n---\r\nkind: X",
        '{"kind":  "Service"}',
        "apiVersion: v1\nkind: ConfigMap\ndata: {a: &x 1, b: *x}\n",
    ],
)
def test_what_has_no_pods_is_printed_byte_for_byte(text: str) -> None:
    """Whatever it is."""
    for found in (injected(text), run("uninject", "-f", "-", given=text)):
        assert (found.stdout_bytes, found.stderr, found.exit_code) == (text.encode(), "", 0)


def test_bytes_stay_whatever_the_terminal_is_set_to() -> None:
    """What is printed is UTF-8, as what was read."""
    text = "kind: Service\nmetadata: {name: é}\n".encode()
    found = CliRunner(charset="ascii").invoke(app, ("uninject", "-f", "-"), input=text)
    assert (found.stdout_bytes, found.exit_code) == (text, 0)


def test_a_byte_order_mark_does_not_cost_the_comments_behind_it() -> None:
    """Nor is it lost itself."""
    found = injected(f"\ufeff# one\n{POD}").stdout
    assert found.startswith("\ufeff# one\napiVersion: v1\n")
    assert injected(found).stdout == found


def test_what_an_object_is_called_does_nothing_to_a_terminal() -> None:
    """Nobody has checked a name that stands in a file."""
    found = injected(POD.replace("name: pod", 'name: "\\e[2J\\n", annotations: {meshwright.dev/inject: x}'))
    assert found.stderr.startswith("meshwright: Pod default/\\x1b[2J\\n: annotation")


def test_a_comment_ends_with_any_line_ending() -> None:
    """What stands after it is written once."""
    found = injected(f"# one\r{POD}").stdout
    assert found.count("apiVersion") == 1
    assert injected(found).stdout == found


def test_a_document_that_begins_behind_its_marker_keeps_it() -> None:
    """It is a document of its own afterwards, too."""
    pod = "{apiVersion: v1, kind: Pod, metadata: {name: %s}, spec: {containers: [{name: a, image: b}]}}\n"
    found = injected(f"--- {pod % 'one'}--- # two\n\n# second\n{pod % 'two'}")
    assert [each["metadata"]["name"] for each in libyaml.load_all(found.stdout)] == [
        "one",
        "two",
    ]
    assert "--- # two\n\n# second\napiVersion: v1\n" in found.stdout


def test_json_stays_json() -> None:
    """As `kubectl get -o json` has it; with --json, what became of each is there as well."""
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}
    text = json.dumps({**pod, "spec": {"containers": [{"name": "a", "image": "é"}]}})
    found = injected(text)
    assert json.loads(found.stdout)["spec"]["initContainers"][1]["name"] == "meshwright-sidecar"
    assert "é" in found.stdout
    document = json.loads(injected(text, "--json").stdout)
    assert document["objects"] == [
        {
            "object": "Pod default/a",
            "changed": True,
            "failed": False,
            "why": "the policy is enabled",
            "warnings": [],
        }
    ]
    assert document["manifests"]["items"] == [json.loads(found.stdout)]


def test_a_list_of_one_kind_is_a_list() -> None:
    """As API servers have them, whose items do not say what they are; nor do they afterwards."""
    items = [{"metadata": {"name": "pod"}, "spec": {"containers": [{"name": "a", "image": "b"}]}}]
    text = json.dumps({"apiVersion": "v1", "kind": "PodList", "items": items})
    made = injected(text)
    (item,) = json.loads(made.stdout)["items"]
    names = [each["name"] for each in item["spec"]["initContainers"]]
    assert (names, item.keys()) == (["meshwright-init", "meshwright-sidecar"], {"metadata", "spec"})
    assert json.loads(run("uninject", "-f", "-", given=made.stdout).stdout) == json.loads(text)


def test_a_no_is_json_as_well() -> None:
    """What keeps which pod from its sidecar; there are no manifests that somebody might apply."""
    text = f"{POD}---\n{POD.replace('name: pod', 'name: bad, annotations: {meshwright.dev/inject: perhaps}')}"
    found = injected(text, "--json")
    document = json.loads(found.stdout)
    assert (found.exit_code, document["manifests"]) == (1, None)
    assert [each["failed"] for each in document["objects"]] == [False, True]
    assert "must be one of false, true" in document["objects"][1]["why"]
    assert found.stderr.startswith("meshwright: Pod default/bad: ")


def test_a_root_stands_in_the_pods_without_what_is_said_of_it(tmp_path: Path) -> None:
    """An annotation is to be read by programs; what is no certificate would keep every pod from joining."""
    root = CertificateAuthority.open(tmp_path, TrustDomain("a.example"), datetime.now(UTC)).trust_bundle()
    file = tmp_path / "root.pem"
    file.write_bytes("# Főtanúsítvány\n".encode() + root)
    pod = libyaml.load(injected(POD, "--ca", str(file)).stdout)
    assert pod["metadata"]["annotations"]["meshwright.dev/joining-roots"] == root.decode()
    file.write_bytes(root[:60] + root[80:])
    found = injected(POD, "--ca", str(file))
    assert (found.exit_code, found.stdout) == (2, "")
    assert "must contain certificates in PEM, and no private key" in found.stderr


PLAIN = (
    *("12:30", "yes", "0o17", "1e3", "0x1F", "y", "2026-01-01", ".5", "+1", "0b1", "1_000", "0444", "1.0"),
    *("null", "~", "--a", "a", "50m"),
)
QUOTED = (*PLAIN, "-", "a: b", "", "- a", "# a", "é")


def test_scalars_of_a_touched_document_stand_as_they_stood() -> None:
    """Readers differ in what YAML 1.1 or 1.2 takes for a number, a date or a truth value."""
    plain = "".join(f"    - {each}\n" for each in PLAIN)
    quoted = "".join(f"    - {json.dumps(each)}\n" for each in QUOTED)
    text = (
        "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - name: a\n    image: b\n    plain:\n"
        f"{plain}    quoted:\n{quoted}    lines: |\n      one\n        two\n"
    )
    found = injected(text).stdout
    before, after = (libyaml.load(each)["spec"]["containers"][0] for each in (text, found))
    assert after == before
    assert after["quoted"] == list(QUOTED)
    lines = found.splitlines()
    stood = {each: f"    - {'true' if each == 'yes' else 'null' if each == '~' else each}" for each in PLAIN}
    assert [each for each in PLAIN if stood[each] not in lines] == []
    assert "    lines: |" in lines


NUMBERS = {
    "8": 8,
    "08": 8,
    "+8": 8,
    "010": 8,
    "+010": 8,
    "-010": -8,
    "0o10": 8,
    "00": 0,
    "0_7": 7,
    "1_000": 1000,
    "0x1F": 31,
    "0x1_0": 16,
    "0b11": 3,
    "1e1": 10,
    "1.0": 1,
    "1.": 1,
}
"""Each with what `kubectl label --local -o json` made of it."""


@pytest.mark.parametrize("text", NUMBERS)
def test_a_number_is_what_kubectl_takes_it_for_and_stands_as_it_stood(text: str) -> None:
    """Also what is injected a second time, and goes back: the notes have the number, the pod its text."""
    probe = f"{{httpGet: {{port: 80, path: /}}, periodSeconds: {text}, timeoutSeconds: {text}}}"
    own = f"{{name: meshwright-sidecar, image: auto, livenessProbe: {{exec: {{}}, periodSeconds: {text}}}}}"
    pod = POD.replace("{name: a, image: b}", f"{own}, {{name: a, image: b, livenessProbe: {probe}}}")
    found = injected(pod)
    assert (found.exit_code, found.stderr) == (0, "")
    annotations = libyaml.load(found.stdout)["metadata"]["annotations"]
    (noted,) = json.loads(annotations["meshwright.dev/original-probes"]).values()
    assert noted["livenessProbe"]["periodSeconds"] == NUMBERS[text]
    (mine,) = json.loads(annotations["meshwright.dev/own-containers"])
    assert mine["container"]["livenessProbe"]["periodSeconds"] == NUMBERS[text]
    assert f"      periodSeconds: {text}\n      timeoutSeconds: {text}\n" in found.stdout
    again = injected(found.stdout)
    assert (again.stdout, again.stderr, again.exit_code) == (found.stdout, "", 0)
    back = run("uninject", "-f", "-", given=found.stdout).stdout
    assert f"      periodSeconds: {text}\n      timeoutSeconds: {text}\n" in back
    assert injected(back).stdout == found.stdout


@pytest.mark.parametrize("text", ["190:20", "1__e", "0x", "0b2", "1e9999", "_8", ".5"])
def test_what_is_no_whole_number_to_kubectl_is_refused(text: str) -> None:
    """Where one must stand."""
    probe = f"{{httpGet: {{port: 80}}, timeoutSeconds: {text}}}"
    found = injected(POD.replace("image: b", f"image: b, livenessProbe: {probe}"))
    said = (
        "meshwright: Pod default/pod: spec.containers[0].livenessProbe.timeoutSeconds must be a whole number"
    )
    assert (found.exit_code, found.stdout, found.stderr) == (1, "", f"{said}\n")


def test_what_stands_in_an_own_container_is_written_the_same_again() -> None:
    """It is made of the notes from then on, in which texts and numbers are unambiguous."""
    said = "env: [{name: A, value: 1_0}, {name: B, value: 12:30}, {name: C, value: y}]"
    own = f"{{name: meshwright-sidecar, image: auto, {said}, terminationMessagePath: 0444}}"
    found = injected(POD.replace("[{name: a", f"[{own}, {{name: a"))
    assert found.exit_code == 0
    assert injected(found.stdout).stdout == found.stdout


def test_a_namespace_of_the_same_file_counts() -> None:
    """Its labels and annotations; the pod's own are nearer."""
    pod = f"---\n{POD.replace('name: pod', 'name: %s, namespace: shop%s')}"
    labels = "labels: {meshwright.dev/inject: 'false'}"
    space = f"apiVersion: v1\nkind: Namespace\nmetadata: {{name: shop, {labels}}}\n"
    text = space + pod % ("one", "") + pod % ("two", ", annotations: {meshwright.dev/inject: 'true'}")
    found = injected(text)
    assert found.stdout.startswith(space + pod % ("one", ""))
    assert found.stdout.count("name: meshwright-sidecar") == 1
    assert found.stderr == ("unchanged: Pod shop/one: the namespace's label meshwright.dev/inject is false\n")


MESH = """
apiVersion: config.openservicemesh.io/v1alpha2
kind: MeshConfig
metadata: {name: osm-mesh-config, namespace: osm-system}
spec:
  sidecar: {envoyImage: "mesh:1", initContainerImage: "mesh-init:1", logLevel: debug}
  traffic: {outboundPortExclusionList: [6379], outboundIPRangeExclusionList: [169.254.169.254/32]}
---
apiVersion: v1
kind: Namespace
metadata: {name: out, annotations: {openservicemesh.io/sidecar-injection: disabled}}
"""


def test_a_mesh_s_configuration_and_namespaces_count(tmp_path: Path) -> None:
    """Those that a directory has, as the server reads them; what is wrong with them is not passed over."""
    (tmp_path / "mesh.yaml").write_text(MESH)
    text = f"{POD}---\n{POD.replace('name: pod', 'name: pod, namespace: out')}"
    words = ("inject", "-f", "-", "--mesh", str(tmp_path))
    found = run(*words, given=text)
    first, second = libyaml.load_all(found.stdout)
    rules, sidecar = first["spec"]["initContainers"]
    assert (rules["image"], sidecar["image"]) == ("mesh-init:1", "mesh:1")
    assert rules["args"][rules["args"].index("--exclude-outbound-ports") + 1] == "6379"
    assert sidecar["args"][sidecar["args"].index("--envoy-log-level") + 1] == "debug"
    assert "169.254.169.254/32" in rules["args"]
    assert "initContainers" not in second["spec"]
    assert "the namespace's annotation openservicemesh.io/sidecar-injection is disabled" in found.stderr
    (tmp_path / "mesh.yaml").write_text(MESH.replace("[6379]", "[redis]"))
    wrong = run(*words, given=text)
    assert (wrong.exit_code, wrong.stdout) == (2, "")
    assert "outboundPortExclusionList" in wrong.stderr


def test_a_null_of_the_author_s_says_nothing() -> None:
    """By a webhook there is none: an API server does not keep it. By hand it comes to the same."""
    own = "{name: meshwright-sidecar, image: auto, resources: %s, lifecycle: %s, env: [{name: A, value: %s}]}"
    texts = [
        POD.replace("[{name: a", f"[{own % said}, {{name: a") for said in (("null",) * 3, ("{}", "{}", "''"))
    ]
    null, nothing = (libyaml.load(injected(each).stdout)["spec"]["initContainers"][1] for each in texts)
    assert null["resources"] == {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"memory": "256Mi"}}
    assert (null["lifecycle"], null["env"][-1]) == (nothing["lifecycle"], {"name": "A"})


@pytest.mark.parametrize(("policy", "said"), [("Always", 0), ("OnFailure", 1), ("Never", 1)])
def test_a_pod_that_is_to_end_is_warned_of_a_sidecar_that_does_not(policy: str, said: int) -> None:
    """Whoever made it: by its restart policy, not only a Job's."""
    classic = "name: pod, annotations: {meshwright.dev/sidecar-placement: classic}"
    text = POD.replace("name: pod", classic).replace("spec: {", f"spec: {{restartPolicy: {policy}, ")
    assert injected(text).stderr.count("a sidecar as an ordinary container does not end by itself") == said
    native = injected(text.replace("classic", "native"))
    assert "does not end" not in native.stderr


REFUSED = {
    "openservicemesh.io/inbound-port-exclusion-list: http": "'http' is not a port number from 1 to 65535",
    "openservicemesh.io/outbound-port-exclusion-list: '70000'": "'70000' is not a port number",
    "openservicemesh.io/outbound-ip-range-exclusion-list: 10.0.0.1/8": "has host bits set",
    "openservicemesh.io/outbound-ip-range-inclusion-list: here": "does not appear to be an IPv4 or IPv6",
    "openservicemesh.io/sidecar-injection: maybe": "is 'maybe': must be one of disabled, enabled,",
    "meshwright.dev/inject: 'yes'": "annotation meshwright.dev/inject is 'yes': must be one of false, true",
    "meshwright.dev/sidecar-placement: first": "is 'first': must be one of classic, native",
    "meshwright.dev/overlays: larg": (
        "has 'larg', which is not an overlay; the overlays are: debug, labelled, large"
    ),
    'meshwright.dev/overlays: "a\\nb"': "annotation meshwright.dev/overlays has a control character",
    "meshwright.dev/sidecar-driver: pipy": "sidecar driver 'pipy' is unknown",
    "meshwright.dev/inject: [1]": "metadata.annotations.meshwright.dev/inject must be text",
}


@pytest.mark.parametrize("annotation", REFUSED)
def test_what_cannot_be_is_refused_and_nothing_is_printed(annotation: str) -> None:
    """A pod without the sidecar that it is to have must not be applied with the rest."""
    good = (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: good}\nspec: {containers: [{name: a, image: b}]}\n---\n"
    )
    bad = good.replace("name: good", f"name: bad, annotations: {{{annotation}}}")
    found = injected(good + bad)
    assert found.stdout == ""
    assert found.exit_code == 1
    assert found.stderr.startswith("meshwright: Pod default/bad: ")
    assert REFUSED[annotation] in found.stderr


UNREADABLE = {
    "a: [1\n": "standard input, line 2: must be valid YAML",
    "a: 1\n---\nb: 1\nb: 2\n": "standard input, line 4: must have each key only once",
    "a: 1\n...\nb: 2\n": "standard input, line 3: begin each document with ---",
    "{": "standard input, line 2: must be valid YAML",
    '{"a": 1, "a": 2}': "standard input, line 1: must have each key only once",
    f'{{"a": {"[" * 64}{"]" * 64}}}': "standard input, line 1: must be nested at most 64 deep",
}


@pytest.mark.parametrize("text", UNREADABLE)
def test_what_cannot_be_read_is_said_with_its_line(text: str) -> None:
    """Nothing is printed."""
    found = injected(text)
    assert found.stdout == ""
    assert found.exit_code == 2
    assert found.stderr.startswith(f"meshwright: {UNREADABLE[text]}")


def test_a_configuration_is_read_as_a_whole(tmp_path: Path) -> None:
    """All that is wrong with it is said at once."""
    file = tmp_path / "config.yaml"
    file.write_text("policy: sometimes\noverlay: {}\nsidecar: {placement: last}\n")
    found = run("inject", "-f", "-", "--config", str(file), given="")
    assert found.exit_code == 2
    assert [line.partition("config.yaml: ")[2] for line in found.stderr.splitlines()] == [
        'sidecar.placement is "last": must be one of , classic, native',
        'policy is "sometimes": must be one of disabled, enabled',
        "overlay is a mapping of 0 keys: unknown field; did you mean overlays?",
    ]


def test_how_its_author_has_the_sidecar_probed_is_the_sidecar_s_own() -> None:
    """Nobody asks the agent for it by way of the agent."""
    own = "{name: meshwright-sidecar, image: auto, readinessProbe: {httpGet: {port: mesh-status}}}"
    text = injected(POD.replace("{name: a, image: b}", f"{{name: a, image: b}}, {own}")).stdout
    pod = libyaml.load(text)
    assert pod["spec"]["initContainers"][1]["readinessProbe"]["httpGet"]["port"] == "mesh-status"
    assert pod["metadata"]["annotations"]["meshwright.dev/probes"] == "{}"
    assert injected(text).stdout == text


NONSENSE = {
    "original-probes": '{"a": {"livenessProbe": {"httpGet": 7}}}',
    "own-containers": (
        '[{"field": "containers", "index": 0, "container": {"name": "meshwright-sidecar", "env": 7}}]'
    ),
}


@pytest.mark.parametrize("name", NONSENSE)
def test_what_the_notes_hold_is_looked_at_as_well(name: str) -> None:
    """It is refused in words, by both commands."""
    probed = "{name: a, image: b, livenessProbe: {tcpSocket: {port: 1}}}"
    pod = libyaml.load(injected(POD.replace("{name: a, image: b}", probed)).stdout)
    pod["metadata"]["annotations"][f"meshwright.dev/{name}"] = NONSENSE[name]
    text = yaml.safe_dump(pod)
    for found in (injected(text), run("uninject", "-f", "-", given=text)):
        assert (found.exit_code, found.stdout) == (1, "")
        assert "must be a " in found.stderr
