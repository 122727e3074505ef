"""Tests of suggestions for unknown proxy names: few comparisons, even in a large mesh."""

from difflib import SequenceMatcher

import pytest

from catalog.explain.names import reason_for_unknown
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.problems.spelling import COMPARED
from tests.meshes import values as a


def test_unknown_proxy_name_is_compared_with_few_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """At most `COMPARED` names are compared, because the server has many other requests to answer."""
    compared = list[str]()
    set_seq1 = SequenceMatcher.set_seq1

    def counting(matcher: SequenceMatcher[str], word: str) -> None:
        compared.append(word)
        set_seq1(matcher, word)

    monkeypatch.setattr(SequenceMatcher, "set_seq1", counting)
    many = [a.workload(f"w{item}", f"10.0.{item // 250}.{item % 250}") for item in range(3 * COMPARED)]
    (name,) = (str(workload.proxy_name) for workload in many if workload.key.name == "w77")
    uuid, _, rest = name.partition(".")
    text = reason_for_unknown(a.view(*many), ProxyName.parse(f"{uuid}x.{rest}"))
    assert text == f"no workload has the UUID {uuid}x (did you mean {name}?)"
    compared.clear()
    alike = [
        a.workload(f"w{each}", f"10.0.{each // 250}.{each % 250}", primary="shop") for each in range(600)
    ]
    reason_for_unknown(a.view(*alike), ProxyName.parse("w3x.shop.default"))
    assert 0 < len(compared) <= COMPARED + 1
