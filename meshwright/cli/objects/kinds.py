"""Kinds as people type them, and as kubectl prints them. A pure module."""

from typing import Final

from meshwright.cli.errors import CommandFailed
from meshwright.mesh.kinds import Kind
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.problems.spelling import nearest
from meshwright.specs.kinds import READ

_ENDINGS: Final = (("ies", "y"), ("es", ""), ("s", ""))


def kind_typed(text: str) -> Kind:
    """Return the kind of a text such as `TrafficSplit`, `trafficsplits` or `trafficsplit.split.smi-spec.io`.

    Raises CommandFailed for an unknown kind, with a similar one.
    """
    name, _, group = text.lower().partition(".")
    # Sorted so that of two kinds with one name always the same is proposed.
    known = {kind.name.lower(): kind for kind in sorted(READ, key=lambda kind: kind.full, reverse=True)}
    # Of two kinds with one name the first is typed without a group, as it is printed: SMI's TCPRoute.
    of_group = {kind.name.lower(): kind for kind in reversed(tuple(READ)) if not group or kind.group == group}
    for form in (name, *(name.removesuffix(end) + rest for end, rest in _ENDINGS if name.endswith(end))):
        if (kind := of_group.get(form)) is not None:
            return kind
    near = nearest(name, known)
    meant = f"did you mean {known[near].name}?" if near else "`meshwright schema` lists the kinds"
    raise CommandFailed(f"{text!r} is not a kind of the mesh: {meant}")


def resource_of(key: ObjectKey) -> str:
    """Return an object as kubectl prints it: `trafficsplit.split.smi-spec.io/web`, `service/web`."""
    return f"{key.kind.full.lower()}/{key.name}"
