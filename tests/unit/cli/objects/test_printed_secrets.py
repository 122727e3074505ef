"""Printed Secrets: who may read etcd sees that they exist, and none of their content."""

from meshwright.cli.objects.printing import as_json, as_yaml
from meshwright.etcd.values import KeyValue
from meshwright.mesh.kinds import SECRET
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import ObjectKey
from tests.tools.leak_forms import of_key, seen
from tests.tools.tls_secrets import self_signed

KEY = ObjectKey(SECRET, Namespace("default"), "shop")
PAIR = self_signed("shop.example")
CONTENT = {"the key": of_key(PAIR.key), "a line of its PEM": PAIR.key.splitlines()[1]}


def test_content_of_a_secret_is_withheld() -> None:
    """Also of a value that is broken, or that claims to be of another kind."""
    whole = PAIR.manifest("shop")
    for text in (whole, whole.replace("kind: Secret", "kind: Service"), f"{whole}]", f"- {PAIR.key!r}"):
        objects = {KEY: KeyValue(b"/objects/shop", text.encode(), 1, 1)}
        printed = as_yaml(objects), as_json(objects, alone=True), as_json(objects, alone=False)
        assert [seen(output.encode(), CONTENT) for output in printed] == [[], [], []]
    assert seen(whole.encode(), CONTENT)  # positive control


def test_name_of_a_secret_is_printed() -> None:
    """Everything but its content helps who looks for a mistake."""
    objects = {KEY: KeyValue(b"/objects/shop", PAIR.manifest("shop").encode(), 1, 1)}
    assert '"name": "shop"' in as_yaml(objects)
    assert '"tls.key": "[withheld]"' in as_yaml(objects)
