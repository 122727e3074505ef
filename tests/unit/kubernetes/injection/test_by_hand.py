"""Tests of `meshwright inject` and `uninject` on files: golden output, idempotence and removal.

`UPDATE_GOLDEN=1` rewrites `cases/*.injected`.
"""

import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from meshwright.cli.main import app
from meshwright.mesh.names import TrustDomain
from tests.tools import libyaml
from tests.tools.command_runner import CliRunner, Result
from tests.tools.own_authority import own_authority

CASES = Path(__file__).parent / "cases"
CONFIG = CASES / "config.yaml"
POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: pod}\nspec: {containers: [{name: a, image: b}]}\n"
NAMES = sorted(path.stem for path in CASES.glob("*.yaml") if path != CONFIG)


def run(*words: str, given: str | None = None) -> Result:
    """Run the command with this standard input."""
    return CliRunner().invoke(app, words, input=given)


def injected(text: str, *more: str) -> Result:
    """Inject the manifests on standard input, with the configuration of the cases."""
    return run("inject", "-f", "-", "--config", str(CONFIG), *more, given=text)


@pytest.mark.parametrize("name", NAMES)
def test_inject_prints_the_golden_file_and_is_idempotent(name: str) -> None:
    """The messages are golden too. A second injection prints the same manifests."""
    result = run("inject", "-f", str(CASES / f"{name}.yaml"), "--config", str(CONFIG))
    assert result.exit_code == 0, result.exception
    for suffix, text in (("injected", result.stdout), ("said", result.stderr)):
        file = CASES / f"{name}.{suffix}"
        if os.environ.get("UPDATE_GOLDEN"):
            file.write_text(text)
        assert text == file.read_text()
    assert injected(result.stdout).stdout == result.stdout


@pytest.mark.parametrize("name", NAMES)
def test_uninject_restores_the_authors_manifests(name: str) -> None:
    """All values are restored, and documents without a sidecar stay the same text."""
    text = (CASES / f"{name}.yaml").read_text()
    back = run("uninject", "-f", str(CASES / f"{name}.injected"))
    assert list(libyaml.load_all(back.stdout)) == list(libyaml.load_all(text))
    assert run("uninject", "-f", "-", given=text).stdout == text


def test_every_golden_file_has_a_case() -> None:
    """A golden file without its case would never be compared."""
    kept = {path.stem for suffix in ("injected", "said") for path in CASES.glob(f"*.{suffix}")}
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
def test_manifest_without_pods_is_printed_byte_for_byte(text: str) -> None:
    """Comments, line endings and anchors of such documents are kept."""
    for result in (injected(text), run("uninject", "-f", "-", given=text)):
        assert (result.stdout_bytes, result.stderr, result.exit_code) == (text.encode(), "", 0)


def test_output_is_utf_8_whatever_the_terminals_encoding() -> None:
    """The bytes of the output are those of the input."""
    text = "kind: Service\nmetadata: {name: é}\n".encode()
    result = CliRunner(charset="ascii").invoke(app, ("uninject", "-f", "-"), input=text)
    assert (result.stdout_bytes, result.exit_code) == (text, 0)


def test_byte_order_mark_and_the_comments_behind_it_are_kept() -> None:
    """A second injection prints the same manifests."""
    stdout = injected(f"\ufeff# one\n{POD}").stdout
    assert stdout.startswith("\ufeff# one\napiVersion: v1\n")
    assert injected(stdout).stdout == stdout


def test_control_characters_of_names_are_escaped_in_messages() -> None:
    """A name in a file is not validated, and it must not control the terminal."""
    result = injected(POD.replace("name: pod", 'name: "\\e[2J\\n", annotations: {meshwright.dev/inject: x}'))
    assert result.stderr.startswith("meshwright: Pod default/\\x1b[2J\\n: annotation")


def test_comment_ends_with_any_line_ending() -> None:
    """The text after a carriage return is written once."""
    stdout = injected(f"# one\r{POD}").stdout
    assert stdout.count("apiVersion") == 1
    assert injected(stdout).stdout == stdout


def test_document_that_begins_behind_its_marker_keeps_the_marker() -> None:
    """The output has two documents as well."""
    pod = "{apiVersion: v1, kind: Pod, metadata: {name: %s}, spec: {containers: [{name: a, image: b}]}}\n"
    result = injected(f"--- {pod % 'one'}--- # two\n\n# second\n{pod % 'two'}")
    assert [item["metadata"]["name"] for item in libyaml.load_all(result.stdout)] == [
        "one",
        "two",
    ]
    assert "--- # two\n\n# second\napiVersion: v1\n" in result.stdout


def test_json_input_gives_json_output() -> None:
    """The form is that of `kubectl get -o json`.

    With `--json` the document also has the result of each object.
    """
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}
    text = json.dumps({**pod, "spec": {"containers": [{"name": "a", "image": "é"}]}})
    result = injected(text)
    assert json.loads(result.stdout)["spec"]["initContainers"][1]["name"] == "meshwright-sidecar"
    assert "é" in result.stdout
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
    assert document["manifests"]["items"] == [json.loads(result.stdout)]


def test_items_of_a_typed_list_are_injected() -> None:
    """API servers omit apiVersion and kind of such items, and the output omits them too."""
    items = [{"metadata": {"name": "pod"}, "spec": {"containers": [{"name": "a", "image": "b"}]}}]
    text = json.dumps({"apiVersion": "v1", "kind": "PodList", "items": items})
    made = injected(text)
    (item,) = json.loads(made.stdout)["items"]
    names = [init_container["name"] for init_container in item["spec"]["initContainers"]]
    assert (names, item.keys()) == (["meshwright-init", "meshwright-sidecar"], {"metadata", "spec"})
    assert json.loads(run("uninject", "-f", "-", given=made.stdout).stdout) == json.loads(text)


def test_refusal_with_json_has_reasons_and_no_manifests() -> None:
    """Each object has its result. Incomplete manifests are omitted, because they could be applied."""
    text = f"{POD}---\n{POD.replace('name: pod', 'name: bad, annotations: {meshwright.dev/inject: perhaps}')}"
    result = injected(text, "--json")
    document = json.loads(result.stdout)
    assert (result.exit_code, document["manifests"]) == (1, None)
    assert [item["failed"] for item in document["objects"]] == [False, True]
    assert "must be one of false, true" in document["objects"][1]["why"]
    assert result.stderr.startswith("meshwright: Pod default/bad: ")


def test_root_annotation_has_only_the_certificates_of_the_file(tmp_path: Path) -> None:
    """Comments of the file are dropped, because programs read the annotation.

    A broken certificate is an error, because it would keep every pod from joining.
    """
    root = own_authority(tmp_path, TrustDomain("a.example"), datetime.now(UTC)).trust_bundle()
    file = tmp_path / "root.pem"
    file.write_bytes("# Főtanúsítvány\n".encode() + root)
    pod = libyaml.load(injected(POD, "--ca", str(file)).stdout)
    assert pod["metadata"]["annotations"]["meshwright.dev/joining-roots"] == root.decode()
    file.write_bytes(root[:60] + root[80:])
    result = injected(POD, "--ca", str(file))
    assert (result.exit_code, result.stdout) == (2, "")
    assert "must contain certificates in PEM, without a private key" in result.stderr


PLAIN = (
    *("12:30", "yes", "0o17", "1e3", "0x1F", "y", "2026-01-01", ".5", "+1", "0b1", "1_000", "0444", "1.0"),
    *("null", "~", "--a", "a", "50m"),
)
QUOTED = (*PLAIN, "-", "a: b", "", "- a", "# a", "é")


def test_scalars_of_a_changed_document_keep_their_text() -> None:
    """YAML 1.1 and 1.2 differ in numbers, dates and booleans, so the text must not change its meaning."""
    plain = "".join(f"    - {item}\n" for item in PLAIN)
    quoted = "".join(f"    - {json.dumps(item)}\n" for item in QUOTED)
    text = (
        "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - name: a\n    image: b\n    plain:\n"
        f"{plain}    quoted:\n{quoted}    lines: |\n      one\n        two\n"
    )
    stdout = injected(text).stdout
    before, after = (libyaml.load(item)["spec"]["containers"][0] for item in (text, stdout))
    assert after == before
    assert after["quoted"] == list(QUOTED)
    lines = stdout.splitlines()
    stood = {each: f"    - {'true' if each == 'yes' else 'null' if each == '~' else each}" for each in PLAIN}
    assert [item for item in PLAIN if stood[item] not in lines] == []
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
def test_number_is_read_as_by_kubectl_and_keeps_its_text(text: str) -> None:
    """The annotations have the number, and the pod has the original text.

    This also holds after a second injection and after a removal.
    """
    probe = f"{{httpGet: {{port: 80, path: /}}, periodSeconds: {text}, timeoutSeconds: {text}}}"
    own = f"{{name: meshwright-sidecar, image: auto, livenessProbe: {{exec: {{}}, periodSeconds: {text}}}}}"
    pod = POD.replace("{name: a, image: b}", f"{own}, {{name: a, image: b, livenessProbe: {probe}}}")
    result = injected(pod)
    assert (result.exit_code, result.stderr) == (0, "")
    annotations = libyaml.load(result.stdout)["metadata"]["annotations"]
    (noted,) = json.loads(annotations["meshwright.dev/original-probes"]).values()
    assert noted["livenessProbe"]["periodSeconds"] == NUMBERS[text]
    (mine,) = json.loads(annotations["meshwright.dev/own-containers"])
    assert mine["container"]["livenessProbe"]["periodSeconds"] == NUMBERS[text]
    assert f"      periodSeconds: {text}\n      timeoutSeconds: {text}\n" in result.stdout
    again = injected(result.stdout)
    assert (again.stdout, again.stderr, again.exit_code) == (result.stdout, "", 0)
    back = run("uninject", "-f", "-", given=result.stdout).stdout
    assert f"      periodSeconds: {text}\n      timeoutSeconds: {text}\n" in back
    assert injected(back).stdout == result.stdout


@pytest.mark.parametrize("text", ["190:20", "1__e", "0x", "0b2", "1e9999", "_8", ".5"])
def test_number_that_kubectl_does_not_read_as_an_integer_is_refused(text: str) -> None:
    """The field must be a whole number, and the error names the field."""
    probe = f"{{httpGet: {{port: 80}}, timeoutSeconds: {text}}}"
    result = injected(POD.replace("image: b", f"image: b, livenessProbe: {probe}"))
    message = (
        "meshwright: Pod default/pod: spec.containers[0].livenessProbe.timeoutSeconds must be a whole number"
    )
    assert (result.exit_code, result.stdout, result.stderr) == (1, "", f"{message}\n")


def test_authors_sidecar_container_is_written_the_same_again() -> None:
    """A second injection is based on the annotations, in which texts and numbers are unambiguous."""
    text = "env: [{name: A, value: 1_0}, {name: B, value: 12:30}, {name: C, value: y}]"
    own = f"{{name: meshwright-sidecar, image: auto, {text}, terminationMessagePath: 0444}}"
    result = injected(POD.replace("[{name: a", f"[{own}, {{name: a"))
    assert result.exit_code == 0
    assert injected(result.stdout).stdout == result.stdout


def test_namespace_in_the_same_file_applies() -> None:
    """The namespace's labels apply to its pods, and the pod's own annotation takes precedence."""
    pod = f"---\n{POD.replace('name: pod', 'name: %s, namespace: shop%s')}"
    labels = "labels: {meshwright.dev/inject: 'false'}"
    space = f"apiVersion: v1\nkind: Namespace\nmetadata: {{name: shop, {labels}}}\n"
    text = space + pod % ("one", "") + pod % ("two", ", annotations: {meshwright.dev/inject: 'true'}")
    result = injected(text)
    assert result.stdout.startswith(space + pod % ("one", ""))
    assert result.stdout.count("name: meshwright-sidecar") == 1
    assert result.stderr == (
        "unchanged: Pod shop/one: the namespace's label meshwright.dev/inject is false\n"
    )


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


def test_mesh_config_and_namespaces_of_a_directory_apply(tmp_path: Path) -> None:
    """The files are read as by the server, and an error in them ends the command."""
    (tmp_path / "mesh.yaml").write_text(MESH)
    text = f"{POD}---\n{POD.replace('name: pod', 'name: pod, namespace: out')}"
    words = ("inject", "-f", "-", "--mesh", str(tmp_path))
    result = run(*words, given=text)
    first, second = libyaml.load_all(result.stdout)
    rules, sidecar = first["spec"]["initContainers"]
    assert (rules["image"], sidecar["image"]) == ("mesh-init:1", "mesh:1")
    assert rules["args"][rules["args"].index("--exclude-outbound-ports") + 1] == "6379"
    assert sidecar["args"][sidecar["args"].index("--envoy-log-level") + 1] == "debug"
    assert "169.254.169.254/32" in rules["args"]
    assert "initContainers" not in second["spec"]
    assert "the namespace's annotation openservicemesh.io/sidecar-injection is disabled" in result.stderr
    (tmp_path / "mesh.yaml").write_text(MESH.replace("[6379]", "[redis]"))
    wrong = run(*words, given=text)
    assert (wrong.exit_code, wrong.stdout) == (2, "")
    assert "outboundPortExclusionList" in wrong.stderr


def test_null_field_of_the_author_is_treated_as_absent() -> None:
    """An API server stores no nulls, so a webhook never sees one. The command gives the same result."""
    own = "{name: meshwright-sidecar, image: auto, resources: %s, lifecycle: %s, env: [{name: A, value: %s}]}"
    texts = [
        POD.replace("[{name: a", f"[{own % said}, {{name: a") for said in (("null",) * 3, ("{}", "{}", "''"))
    ]
    null, nothing = (libyaml.load(injected(text).stdout)["spec"]["initContainers"][1] for text in texts)
    assert null["resources"] == {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"memory": "256Mi"}}
    assert (null["lifecycle"], null["env"][-1]) == (nothing["lifecycle"], {"name": "A"})


@pytest.mark.parametrize(("policy", "said"), [("Always", 0), ("OnFailure", 1), ("Never", 1)])
def test_pod_that_ends_with_a_classic_sidecar_has_a_warning(policy: str, said: int) -> None:
    """The restart policy decides, so the warning also applies to pods without a Job."""
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
def test_invalid_annotation_is_refused_and_no_manifest_is_printed(annotation: str) -> None:
    """The valid pods are withheld too, because a pod without its sidecar must not be applied with them."""
    good = (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: good}\nspec: {containers: [{name: a, image: b}]}\n---\n"
    )
    bad = good.replace("name: good", f"name: bad, annotations: {{{annotation}}}")
    result = injected(good + bad)
    assert result.stdout == ""
    assert result.exit_code == 1
    assert result.stderr.startswith("meshwright: Pod default/bad: ")
    assert REFUSED[annotation] in result.stderr


UNREADABLE = {
    "a: [1\n": "standard input, line 2: must be valid YAML",
    "a: 1\n---\nb: 1\nb: 2\n": "standard input, line 4: must have each key only once",
    "a: 1\n...\nb: 2\n": "standard input, line 3: begin each document with ---",
    "{": "standard input, line 2: must be valid YAML",
    '{"a": 1, "a": 2}': "standard input, line 1: must have each key only once",
    f'{{"a": {"[" * 64}{"]" * 64}}}': "standard input, line 1: must be nested at most 64 deep",
}


@pytest.mark.parametrize("text", UNREADABLE)
def test_unreadable_input_is_an_error_with_its_line(text: str) -> None:
    """No manifest is printed."""
    result = injected(text)
    assert result.stdout == ""
    assert result.exit_code == 2
    assert result.stderr.startswith(f"meshwright: {UNREADABLE[text]}")


def test_all_errors_of_a_configuration_are_reported_together(tmp_path: Path) -> None:
    """The messages name every wrong field."""
    file = tmp_path / "config.yaml"
    file.write_text("policy: sometimes\noverlay: {}\nsidecar: {placement: last}\n")
    result = run("inject", "-f", "-", "--config", str(file), given="")
    assert result.exit_code == 2
    assert [line.partition("config.yaml: ")[2] for line in result.stderr.splitlines()] == [
        'sidecar.placement is "last": must be one of , classic, native',
        'policy is "sometimes": must be one of disabled, enabled',
        "overlay is a mapping of 0 keys: unknown field; did you mean overlays?",
    ]


def test_authors_probe_of_the_sidecar_stays_with_the_sidecar() -> None:
    """The agent need not be asked about itself through the agent."""
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
def test_malformed_annotations_of_an_injection_are_an_error(name: str) -> None:
    """Both commands refuse a pod whose injection annotations were changed."""
    probed = "{name: a, image: b, livenessProbe: {tcpSocket: {port: 1}}}"
    pod = libyaml.load(injected(POD.replace("{name: a, image: b}", probed)).stdout)
    pod["metadata"]["annotations"][f"meshwright.dev/{name}"] = NONSENSE[name]
    text = yaml.safe_dump(pod)
    for result in (injected(text), run("uninject", "-f", "-", given=text)):
        assert (result.exit_code, result.stdout) == (1, "")
        assert "must be a " in result.stderr
