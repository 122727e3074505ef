"""Tests of answers of several servers, put together as documents."""

from meshwright.admin.jsonable import Document, Json
from meshwright.admin.replicas import documents
from meshwright.admin.replicas.members import Members, members_document
from meshwright.admin.replicas.pulse import ServerFacts
from meshwright.records.contract import Epoch
from meshwright.replicas.state import ReplicaState


def test_partial_names_each_silent_server() -> None:
    """The order is that of the names."""
    assert documents.partial({"c": "no answer", "b": "TLS failed"}) == [
        {"replica": "b", "reason": "TLS failed"},
        {"replica": "c", "reason": "no answer"},
    ]
    assert documents.partial({}) == []


def test_entries_name_their_server() -> None:
    """A proxy that never connected has none."""
    where = {"one": "a"}
    assert documents.located([{"cn": "one"}, {"cn": "two"}], "cn", where.get) == [
        {"cn": "one", "replica": "a"},
        {"cn": "two", "replica": None},
    ]


def test_answer_of_one_server_alone() -> None:
    """Each entry names the server, but for a proxy that never connected."""
    document: Document = {"at": "1", "proxies": [{"cn": "one", "state": "expected"}, {"cn": "two"}]}
    assert documents.of_one("a", document) == {
        "at": "1",
        "proxies": [
            {"cn": "one", "state": "expected", "replica": None},
            {"cn": "two", "replica": "a"},
        ],
        "replica": "a",
        "partial": [],
    }


def test_streams_of_all_servers() -> None:
    """Numbers of streams count at one server only, so the server is named."""
    own: Document = {"streams": [{"stream": 1}, {"stream": 2}]}
    assert documents.streams("b", own, {"a": {"streams": [{"stream": 1}]}, "c": {}}) == {
        "streams": [
            {"stream": 1, "replica": "a"},
            {"stream": 1, "replica": "b"},
            {"stream": 2, "replica": "b"},
        ]
    }


def test_pushes_of_a_proxy_that_moved() -> None:
    """The newest push is first, whichever server sent it."""
    own: Document = {
        "proxy": "x",
        "pushes": [{"at": "3"}, {"at": "1", "nonce": "2"}, {"at": "1", "nonce": "1"}],
    }
    assert documents.pushes("a", own, {"b": {"pushes": [{"at": "2"}]}}) == {
        "proxy": "x",
        "pushes": [
            {"at": "3", "replica": "a"},
            {"at": "2", "replica": "b"},
            {"at": "1", "nonce": "2", "replica": "a"},
            {"at": "1", "nonce": "1", "replica": "a"},
        ],
    }


def test_published_snapshot_is_the_one_of_the_server_with_the_proxy() -> None:
    """One server may have left out a part that its proxy rejects; equal snapshots are one entry."""
    where = {"one": "a", "two": "b", "three": "b"}
    full: Document = {"route": {"r": "1"}}
    less: Document = {"route": {"r": "0"}}
    own: Document = {
        "snapshots": [{"proxies": ["never", "one", "three", "two"], "resources": full}],
        "admitted": ["one"],
        "withdrawn": [],
    }
    others: dict[str, Document] = {
        "b": {
            "snapshots": [
                {"proxies": ["one", "three"], "resources": full},
                {"proxies": ["two"], "resources": less},
            ]
        }
    }
    assert documents.published("a", own, others, where.get) == {
        "snapshots": [
            {"proxies": ["never", "one", "three"], "resources": full},
            {"proxies": ["two"], "resources": less},
        ],
        "admitted": ["one"],
        "withdrawn": [],
    }


def test_connectivity_has_the_pushes_of_each_sidecar_s_server() -> None:
    """Everything else is this server's own."""
    where = {"one": "a", "two": "b"}
    own: Document = {
        "protocol": "http",
        "callers": [{"proxy": "one", "brought": {"nonce": "1"}}],
        "called": [{"proxy": "two", "brought": None}],
    }
    others: dict[str, Document] = {
        "b": {
            "callers": [{"proxy": "one", "brought": None}],
            "called": [{"proxy": "two", "brought": {"nonce": "2"}}],
        }
    }
    assert documents.connectivity(own, others, where.get) == {
        "protocol": "http",
        "callers": [{"proxy": "one", "brought": {"nonce": "1"}, "replica": "a"}],
        "called": [{"proxy": "two", "brought": {"nonce": "2"}, "replica": "b"}],
    }


def _member(name: str, **fields: Json) -> Document:
    result: Document = {
        "replica": name,
        "version": "",
        "since": None,
        "address": None,
        "state": "unknown",
        "leads": False,
        "proxies": 0,
        "fair_share": None,
        "store_age_seconds": None,
        "inputs": None,
        "differing_settings": [],
    }
    return result | fields


def test_members() -> None:
    """Each server has its facts; one that does not answer has what it announces."""
    states = {
        "a": ReplicaState(
            "1.0", "2031-05-06T07:08:09+00:00", "10.0.0.1:15132", True, streams=30, inputs="3-ab"
        ),
        "b": ReplicaState("1.1", is_ready=True, streams=10, epoch=Epoch(4)),
        "c": ReplicaState("1.0", is_ready=True, is_stopping=True, streams=5),
        "d": ReplicaState("1.0"),
        "e": None,
    }
    facts = {
        "a": ServerFacts(1.26, {"trust_domain": "x", "verify": "1"}),
        "b": ServerFacts(None, {"trust_domain": "y", "verify": "1", "newer": "2"}),
    }
    assert members_document(Members("a", "b", states, facts, {"c": "no answer within 2 s"})) == {
        "own": "a",
        "leader": "b",
        "replicas": [
            _member(
                "a",
                version="1.0",
                since="2031-05-06T07:08:09+00:00",
                address="10.0.0.1:15132",
                state="ready",
                proxies=30,
                fair_share=22.5,
                store_age_seconds=1.3,
                inputs="3-ab",
            ),
            _member(
                "b",
                version="1.1",
                state="ready",
                leads=True,
                proxies=10,
                fair_share=22.5,
                differing_settings=["trust_domain"],
            ),
            _member("c", version="1.0", state="stopping", proxies=5),
            _member("d", version="1.0", state="starting"),
            _member("e"),
        ],
        "inputs_differ_seconds": None,
        "partial": [{"replica": "c", "reason": "no answer within 2 s"}],
    }
