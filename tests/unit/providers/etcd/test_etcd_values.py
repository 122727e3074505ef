"""Tests of single keys with objects in etcd: their names, and values that cannot be used."""

from dataclasses import replace

import pytest

from meshwright.etcd.values import KeyValue
from meshwright.mesh.kinds import GATEWAY, GATEWAY_CLASS, NAMESPACE, SERVICE, TRAFFIC_SPLIT
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import ObjectKey, created_of
from meshwright.providers.etcd.book import EtcdObjects
from meshwright.providers.etcd.manifest import LARGEST
from meshwright.providers.etcd.names import ObjectNames
from tests.meshes import texts

NAMES = ObjectNames("mesh.example")
SHOP = Namespace("shop")
WEB = ObjectKey(SERVICE, SHOP, "web")
OTHER = ObjectKey(SERVICE, SHOP, "other")
GOOD = texts.service("web").encode()


def item(name: bytes | ObjectKey, value: bytes, created: int = 2, modified: int = 2) -> KeyValue:
    """Return a key with a value."""
    return KeyValue(NAMES.name_of(name) if isinstance(name, ObjectKey) else name, value, created, modified)


@pytest.mark.parametrize(
    ("key", "name"),
    [
        (WEB, b"/meshwright/mesh.example/objects/core/Service/shop/web"),
        (
            ObjectKey(TRAFFIC_SPLIT, SHOP, "web.v1"),
            b"/meshwright/mesh.example/objects/split.smi-spec.io/TrafficSplit/shop/web.v1",
        ),
        (
            ObjectKey(NAMESPACE, Namespace(""), "shop"),
            b"/meshwright/mesh.example/objects/core/Namespace/-/shop",
        ),
        (
            ObjectKey(GATEWAY_CLASS, Namespace(""), "edge"),
            b"/meshwright/mesh.example/objects/gateway.networking.k8s.io/GatewayClass/-/edge",
        ),
    ],
)
def test_each_object_has_one_key_in_the_prefix_of_the_mesh(key: ObjectKey, name: bytes) -> None:
    """The name and the object follow from each other."""
    assert NAMES.name_of(key) == name
    assert NAMES.object_of(name) == key
    assert NAMES.span.start <= name < NAMES.span.end


@pytest.mark.parametrize(
    "rest",
    [
        b"oops",
        b"core/Service/shop",
        b"core/Service/shop/web/more",
        b"core/Service/-/web",
        b"core/Namespace/shop/shop",
        b"gateway.networking.k8s.io/GatewayClass/shop/edge",
        b"gateway.networking.k8s.io/Gateway/-/edge",
        b"core//shop/web",
        b"/Service/shop/web",
        b"core/Service/SHOP/web",
        b"core/Service/shop/we b",
        b"core/Service/shop/\xff",
    ],
)
def test_other_name_is_a_problem_of_its_own(rest: bytes) -> None:
    """The problem shows the name, and the good object beside it is in force."""
    name = b"/meshwright/mesh.example/objects/" + rest
    state = EtcdObjects().taken(NAMES, [item(name, GOOD), item(WEB, GOOD)], ())
    assert list(state.objects()) == [WEB]
    (problem,) = state.problems()
    shown = rest.decode("utf-8", "backslashreplace")
    assert str(problem) == (
        f"MW1115 etcd (objects/{shown}): document: must be objects/GROUP/KIND/NAMESPACE/NAME, for example "
        "objects/core/Service/shop/web; remove the key"
    )


_HOSTILE = [
    (b"a: [", "MW1101", "line 2 must be valid YAML: did not find expected node content"),
    (b"\xff\xfe", "MW1105", "must be UTF-8 text; the byte at offset 0 is not"),
    (b"#" * (LARGEST + 1), "MW1103", f"must have at most {LARGEST} bytes; has {LARGEST + 1}"),
    (b"", "MW1115", "must be one manifest, of Service shop/web; has 0 documents"),
    (GOOD + b"---\n" + GOOD, "MW1115", "must be one manifest, of Service shop/web; has 2 documents"),
    (
        texts.service("other").encode(),
        "MW1115",
        "must be the manifest of Service shop/web, which the key names; is that of Service shop/other",
    ),
    (
        (
            b"apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: Service, metadata: {name: x}, "
            b"spec: {ports: [{port: 80}]}}]\n"
        ),
        "MW1115",
        "must be the manifest of Service shop/web, which the key names; is that of Service default/x",
    ),
    (
        b"apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: shop}\nspec: {ports: 80}\n",
        "MW1010",
        "spec.ports is 80: must be a list",
    ),
]


@pytest.mark.parametrize(("value", "code", "clause"), _HOSTILE, ids=[str(i) for i in range(len(_HOSTILE))])
def test_bad_value_names_its_key_and_leaves_the_last_good_object(
    value: bytes, code: str, clause: str
) -> None:
    """The object stays in force in its last good form, others are not affected, and a good value mends it."""
    good = EtcdObjects().taken(NAMES, [item(WEB, GOOD), item(OTHER, texts.service("other").encode())], ())
    bad = good.taken(NAMES, [item(WEB, value, modified=9)], ())
    assert list(bad.objects()) == [OTHER, WEB]
    assert [key for key, sourced in bad.objects().items() if sourced.stale] == [WEB]
    assert bad.objects()[WEB].value == good.objects()[WEB].value
    problem = next(problem for problem in bad.problems() if problem.code == code)
    assert str(problem.origin) == "etcd (objects/core/Service/shop/web)"
    assert problem.clause.startswith(clause)
    assert bad.taken(NAMES, [item(WEB, GOOD, modified=10)], ()) == good
    alone = EtcdObjects().taken(NAMES, [item(WEB, value)], ())
    assert (dict(alone.objects()), len(alone.problems())) == ({}, 1)


def test_the_older_of_two_objects_has_the_earlier_key() -> None:
    """A change keeps the age, a new key after a deletion is younger, and a written time is the oldest."""
    split = ObjectKey(TRAFFIC_SPLIT, SHOP, "s")

    def age(state: EtcdObjects) -> str:
        return created_of(state.objects()[split].value)

    text = texts.split("s", "web", ("web", 1))
    first = EtcdObjects().taken(NAMES, [item(split, text.encode(), created=9, modified=9)], ())
    changed = first.taken(NAMES, [item(split, text.replace("1", "2").encode(), created=9, modified=30)], ())
    again = changed.taken(NAMES, [], [NAMES.name_of(split)]).taken(
        NAMES, [item(split, text.encode(), created=100, modified=100)], ()
    )
    timed = text.replace("name: s", "name: s, creationTimestamp: '2026-01-01T00:00:00Z'")
    old = first.taken(NAMES, [item(split, timed.encode(), created=100, modified=101)], ())
    assert age(first) == age(changed)
    assert sorted((age(again), age(first), age(old), "~")) == [age(old), age(first), age(again), "~"]


def test_deleted_key_removes_its_object() -> None:
    """The others stay, and a deletion of an unknown key changes nothing."""
    state = EtcdObjects().taken(NAMES, [item(WEB, GOOD), item(OTHER, texts.service("other").encode())], ())
    assert list(state.taken(NAMES, [], [NAMES.name_of(WEB)]).objects()) == [OTHER]
    assert state.taken(NAMES, [], [b"/meshwright/mesh.example/objects/core/Service/shop/none"]) is state


def test_refused_edit_of_a_gateway_leaves_its_last_good_form() -> None:
    """The listeners of the edge stay, as those of a gateway in a file do."""
    key = ObjectKey(GATEWAY, SHOP, "edge")
    value = (
        b"apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {name: edge, namespace: shop}\n"
        b"spec: {gatewayClassName: meshwright, listeners: [{name: http, port: 80, protocol: HTTP}]}\n"
    )
    good = EtcdObjects().taken(NAMES, [item(key, value)], ())
    bad = good.taken(NAMES, [item(key, value.replace(b"80", b"70000"), modified=9)], ())
    assert dict(bad.objects()) == {key: replace(good.objects()[key], stale=True)}
