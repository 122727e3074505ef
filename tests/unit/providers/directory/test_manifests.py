"""The state of a source's manifests: in force, stale, gone, and the order that does not matter."""

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


def test_a_good_file_is_in_force() -> None:
    """Objects carry file, document and line, sorted by key; workloads among them."""
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


def test_a_bad_newest_form_keeps_the_last_good_one() -> None:
    """The object is stale, its neighbour fresh; when it is mended both are fresh."""
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


def test_an_object_that_is_really_gone_is_gone() -> None:
    """From its file, with its file, or because another object took its document's place."""
    state = Manifests().apply("x.yaml", TWO)
    assert list(state.apply("x.yaml", account("a")).objects()) == [account_key("a")]
    assert list(state.apply("x.yaml", account("b")).objects()) == [account_key("b")]
    assert state.apply("x.yaml", None) == Manifests()
    assert state.apply("x.yaml", "# empty\n").objects() == {}


def test_a_file_that_is_no_yaml_keeps_everything() -> None:
    """All its objects are stale, and it is said of the file and of each of them."""
    state = Manifests().apply("x.yaml", TWO).apply("x.yaml", "a: b: c\n")
    assert _stale(state) == {"ServiceAccount shop/a": True, "Workload shop/w": True}
    assert sorted(_codes(state)) == ["MW1101", "MW1107", "MW1107"]


def test_documents_that_ran_into_one_keep_both_objects() -> None:
    """Without the line between them neither is what it says, so both stay as they were."""
    state = Manifests().apply("x.yaml", TWO).apply("x.yaml", TWO.replace("---\n", ""))
    assert _stale(state) == {"ServiceAccount shop/a": True, "Workload shop/w": True}
    assert "MW1102" in _codes(state)


def test_a_document_nobody_can_name_holds_what_is_missing() -> None:
    """Its object may be the missing one, and so may one of a kind that there is not."""
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


def test_an_unreadable_file_keeps_everything() -> None:
    """The reason is said, and reading it again makes it fresh."""
    good = Manifests().apply("x.yaml", TWO)
    state = good.apply(
        "x.yaml", UnreadableFile(Code.UNREADABLE, "must be a readable file: permission denied")
    )
    assert _stale(state) == {"ServiceAccount shop/a": True, "Workload shop/w": True}
    assert _codes(state) == ["MW1104"]
    assert state.apply("x.yaml", TWO) == good


def test_of_two_definitions_the_first_is_in_force() -> None:
    """Across files by name and within a file by document; the problem names both places."""
    text = workload("w", "10.0.0.1") + "---\n" + workload("w", "10.0.0.2")
    state = Manifests().apply("b.yaml", workload("w", "10.0.0.3")).apply("a.yaml", text)
    assert state.objects()[workload_key("w")].origin == InFile("a.yaml", 1, 1)
    said = (
        "must be defined only once; Workload shop/w at a.yaml:1 (document 1) is in force, "
        "because it is first. Remove one of the two"
    )
    assert [(problem.code, problem.origin, problem.expected) for problem in state.problems()] == [
        ("MW1106", InFile("a.yaml", 2, 6), said),
        ("MW1106", InFile("b.yaml", 1, 1), said),
    ]
    assert state.apply("a.yaml", None).objects()[workload_key("w")].origin == InFile("b.yaml", 1, 1)


def test_a_pod_and_a_workload_of_one_name_are_one() -> None:
    """Both would be the workload shop/w, so the second is a duplicate."""
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: w, namespace: shop}\nstatus: {podIP: 10.0.0.9}\n"
    state = Manifests().apply("a.yaml", pod).apply("b.yaml", workload("w", "10.0.0.1"))
    assert [str(key) for key in state.objects()] == ["Pod shop/w"]
    assert _codes(state) == ["MW1106"]


def test_json_is_read_by_extension() -> None:
    """Tabs, which YAML forbids, are fine in JSON."""
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
def test_the_order_of_files_does_not_matter(files: dict[str, str], random: st.DataObject) -> None:
    """Any order, at once or one by one, and twice, gives the same state."""
    shuffled = list(files)
    random.shuffle(shuffled)  # type: ignore[attr-defined]  # hypothesis gives a random.Random
    one_by_one = Manifests()
    for file in shuffled:
        one_by_one = one_by_one.apply(file, files[file]).apply(file, files[file])
    assert one_by_one == Manifests().apply_all(files)
    assert one_by_one.problems() == Manifests().apply_all(files).problems()


@given(st.text(alphabet="ab:-[]{}&*!|>'\"#%\n \t0,", max_size=60))
def test_no_text_raises_or_takes_objects_by_error(text: str) -> None:
    """Whatever a file becomes, either it was understood, or its objects are still there."""
    state = Manifests().apply("x.yaml", TWO).apply("x.yaml", text)
    broken = any(problem.code.startswith("MW11") or problem.code == "MW1001" for problem in state.problems())
    assert bool(state.objects()) == broken
