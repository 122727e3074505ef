"""Registry of the kinds of proof: built-in and installed ones."""

from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Final

from certs.errors import RequestError
from meshwright.enrolment.proofs.contract import Proof

GROUP: Final = "meshwright.proofs"


def accepted(
    names: Iterable[str],
    ours: Mapping[str, Callable[[], Proof]],
    installed: Iterable[EntryPoint] | None = None,
) -> dict[str, Proof]:
    """Return the accepted proofs by kind; a built-in kind wins over an installed one of the same name.

    Raises RequestError for an unknown name, or for a proof that cannot be created.
    """
    points = {point.name: point for point in (entry_points(group=GROUP) if installed is None else installed)}
    proofs: dict[str, Proof] = {}
    for name in names:
        if name in ours:
            proofs[name] = ours[name]()
        elif name in points:
            proofs[name] = _loaded(points[name])
        else:
            known = ", ".join(sorted({*ours, *points}))
            raise RequestError(f"unknown kind of proof of identity {name[:80]!r}: must be one of {known}")
    return proofs


def _loaded(point: EntryPoint) -> Proof:
    try:
        proof: Proof = point.load()()
        kind = proof.kind
    except Exception as error:  # an installed module may raise anything
        text = f"{type(error).__name__}: {error}"
        raise RequestError(f"the proof {point.name} ({point.value}) cannot be used: {text}") from error
    if kind != point.name:
        raise RequestError(
            f"the proof {point.name} ({point.value}) has the kind {kind!r}: must be {point.name!r}"
        )
    return proof
