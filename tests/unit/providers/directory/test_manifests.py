"""Tests of the state of a source's manifests: objects in force, stale or removed, in any order of files."""

from hypothesis import given
from hypothesis import strategies as st

from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.names import Namespace, ServiceAccountName
from meshwright.mesh.objects import SourcedObject
from meshwright.mesh.origins import InFile
from meshwright.providers.directory.file_form import UnreadableFile
from meshwright.providers.directory.manifests import Manifests
from meshwright.specs.codes import Code
from tests.meshes.texts import account, account_key, workload, workload_key

TWO = account("a") + "---\n" + workload("w", "10.0.0.1")


def _codes(state: Manifests) -> list[str]:
    return [problem.code for problem in state.problems()]


def _stale(state: Manifests) -> dict[str, bool]:
    return {str(key): sourced.stale for key, sourced in state.objects().items()}


def test_valid_file_is_in_force_with_its_origins() -> None:
    """Objects have file, document and line as their origin, and are sorted by key."""
    state = Manifests().apply("x.yaml", TWO)
    objects = state.objects()
    assert list(objects) == [account_key("a"), workload_key("w")]
    assert objects[account_key("a")] == SourcedObject(
        account_key("a"),
        ServiceIdentity(Namespace("shop"), ServiceAccountName("a")),
        InFile("x.yaml", 1, 1),
    )
    assert objects[workload_key("w")].origin == InFile("x.yaml", 2, 5)
    assert state.problems() == ()


def test_invalid_object_keeps_its_last_good_form() -> None:
    """The object is stale and its neighbour is fresh; after the correction both are fresh."""
    good = Manifests().apply("x.yaml", TWO)
    bad = good.apply("x.yaml", TWO.replace("10.0.0.1", "10.0.0"))
    assert _stale(bad) == {"ServiceAccount shop/a": False, "Workload shop/w": True}
    assert bad.objects()[workload_key("w")].value == good.objects()[workload_key("w")].value
    assert _codes(bad) == ["MW1013", "MW1107"]
    assert str(bad.problems()[1]) == (
        "MW1107 x.yaml:5 (document 2): Workload shop/w: cannot be read here; the last "
        "good form of the object, from x.yaml:5 (document 2), stays in force. Correct "
        "the document, or remove it to remove the object"
    )
    assert bad.apply("x.yaml", TWO) == good


def test_deleted_object_is_removed() -> None:
    """Its document, its file or its name may be gone."""
    state = Manifests().apply("x.yaml", TWO)
    assert list(state.apply("x.yaml", account("a")).objects()) == [account_key("a")]
    assert list(state.apply("x.yaml", account("b")).objects()) == [account_key("b")]
    assert state.apply("x.yaml", None) == Manifests()
    assert state.apply("x.yaml", "# empty\n").objects() == {}


def test_file_with_invalid_yaml_keeps_all_objects() -> None:
    """All objects of the file are stale, with a problem for the file and for each object."""
    state = Manifests().apply("x.yaml", TWO).apply("x.yaml", "a: b: c\n")
    assert _stale(state) == {"ServiceAccount shop/a": True, "Workload shop/w": True}
    assert sorted(_codes(state)) == ["MW1101", "MW1107", "MW1107"]


def test_missing_document_separator_keeps_both_objects() -> None:
    """Without the `---` line neither object can be read, so both stay as stale."""
    state = Manifests().apply("x.yaml", TWO).apply("x.yaml", TWO.replace("---\n", ""))
    assert _stale(state) == {"ServiceAccount shop/a": True, "Workload shop/w": True}
    assert "MW1102" in _codes(state)


def test_document_without_a_readable_key_keeps_the_missing_object() -> None:
    """The document may be the missing object, and so may one of an unknown kind."""
    state = Manifests().apply("x.yaml", TWO)
    assert _stale(state.apply("x.yaml", account("a") + "---\njust text\n")) == {
        "ServiceAccount shop/a": False,
        "Workload shop/w": True,
    }
    named = "---\napiVersion: v1\nkind: Wrkload\nmetadata: {name: w, namespace: shop}\n"
    assert _stale(state.apply("x.yaml", account("a") + named)) == {
        "ServiceAccount shop/a": False,
        "Workload shop/w": True,
    }


def test_unreadable_file_keeps_all_objects() -> None:
    """The reason is a problem, and the objects are fresh again once the file can be read."""
    good = Manifests().apply("x.yaml", TWO)
    state = good.apply(
        "x.yaml", UnreadableFile(Code.UNREADABLE, "must be a readable file: permission denied")
    )
    assert _stale(state) == {"ServiceAccount shop/a": True, "Workload shop/w": True}
    assert _codes(state) == ["MW1104"]
    assert state.apply("x.yaml", TWO) == good


def test_first_of_several_definitions_is_in_force() -> None:
    """The order is file name, then document; the problem names both places."""
    text = workload("w", "10.0.0.1") + "---\n" + workload("w", "10.0.0.2")
    state = Manifests().apply("b.yaml", workload("w", "10.0.0.3")).apply("a.yaml", text)
    assert state.objects()[workload_key("w")].origin == InFile("a.yaml", 1, 1)
    message = (
        "must be defined only once; Workload shop/w at a.yaml:1 (document 1) is in force, "
        "because it is first. Remove one of the two"
    )
    assert [(problem.code, problem.origin, problem.expected) for problem in state.problems()] == [
        ("MW1106", InFile("a.yaml", 2, 6), message),
        ("MW1106", InFile("b.yaml", 1, 1), message),
    ]
    assert state.apply("a.yaml", None).objects()[workload_key("w")].origin == InFile("b.yaml", 1, 1)


def test_workload_with_the_name_of_a_pod_is_a_duplicate() -> None:
    """Both would be the workload shop/w, so only the first is in force."""
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: w, namespace: shop}\nstatus: {podIP: 10.0.0.9}\n"
    state = Manifests().apply("a.yaml", pod).apply("b.yaml", workload("w", "10.0.0.1"))
    assert [str(key) for key in state.objects()] == ["Pod shop/w"]
    assert _codes(state) == ["MW1106"]


def test_json_file_may_contain_tabs() -> None:
    """A file with the extension .json is parsed as JSON; YAML forbids tabs."""
    text = '{\n\t"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}}'
    assert [str(key) for key in Manifests().apply("x.json", text).objects()] == ["Namespace a"]


_TEXTS = st.sampled_from(
    [
        TWO,
        account("a"),
        account("b"),
        workload("w", "10.0.0.2"),
        workload("w", "x"),
        "a: b: c\n",
        "text\n",
        "",
    ]
)


@given(st.dictionaries(st.sampled_from(["a.yaml", "b.yaml", "c/d.yaml"]), _TEXTS), st.randoms())
def test_order_of_files_does_not_change_the_state(files: dict[str, str], random: st.DataObject) -> None:
    """Files in any order, together or one by one and twice, give the same state."""
    shuffled = list(files)
    random.shuffle(shuffled)  # type: ignore[attr-defined]  # hypothesis gives a random.Random
    one_by_one = Manifests()
    for file in shuffled:
        one_by_one = one_by_one.apply(file, files[file]).apply(file, files[file])
    assert one_by_one == Manifests().apply_all(files)
    assert one_by_one.problems() == Manifests().apply_all(files).problems()


@given(st.text(alphabet="ab:-[]{}&*!|>'\"#%\n \t0,", max_size=60))
def test_arbitrary_text_raises_nothing_and_removes_no_object_by_error(text: str) -> None:
    """Objects remain exactly if the new text of the file has an error."""
    state = Manifests().apply("x.yaml", TWO).apply("x.yaml", text)
    broken = any(problem.code.startswith("MW11") or problem.code == "MW1001" for problem in state.problems())
    assert bool(state.objects()) == broken
