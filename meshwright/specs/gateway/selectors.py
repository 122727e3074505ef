"""Selectors of namespaces, of which the CRDs check only the types."""

from collections.abc import Collection, Iterator
from typing import Final

from meshwright.mesh.gateway.gateways import RoutesFrom
from meshwright.mesh.values.label_selector import LabelRequirement, LabelSelector, SelectorOperator
from meshwright.specs.codes import Code
from meshwright.specs.fields import Fields, one_of
from meshwright.specs.gateway.forms import LABEL_KEY, LABEL_VALUE, choice, missing
from meshwright.specs.quotes import TEXT_RULE, advised

_WITH_VALUES: Final = (SelectorOperator.IN, SelectorOperator.NOT_IN)
_NONE: Final = "all namespaces are excluded"


def namespaces(
    fields: Fields, allowed: Collection[RoutesFrom], default: RoutesFrom
) -> tuple[RoutesFrom, LabelSelector | None]:
    """Read `from` and `selector`; the selector is None if it is invalid, or `from` does not need it."""
    origin = RoutesFrom(choice(fields, "from", allowed, default))
    selector = _label_selector(fields.section("selector"), is_needed=origin is RoutesFrom.SELECTOR)
    if origin is RoutesFrom.SELECTOR and not fields.has("selector"):
        fields.warn("selector", f"is missing; {_NONE}", Code.WRONG_VALUE)
        selector = None
    fields.close()
    return origin, selector if origin is RoutesFrom.SELECTOR else None


def _label_selector(fields: Fields, *, is_needed: bool) -> LabelSelector | None:
    """Read a label selector; None and a warning if Kubernetes cannot use it, although the CRD accepts it."""
    terms = [
        (f"{fields.at('matchLabels')}[{key:.60}]", LabelRequirement(key, SelectorOperator.IN, (value,)), "")
        for key, value in fields.pairs("matchLabels")
    ]
    terms += [(section.path, *_requirement(section)) for section in fields.sections("matchExpressions")]
    fields.close()
    faults = [(path, fault) for path, term, written in terms if (fault := written or _fault(term))]
    for path, fault in faults if is_needed else ():
        fields.notes.warn(Code.WRONG_VALUE, path, f"{fault}; {_NONE}")
    return None if faults else LabelSelector(tuple(sorted({term for _, term, _ in terms})))


def _requirement(fields: Fields) -> tuple[LabelRequirement, str]:
    """Return a requirement, and the error in its operator."""
    for name in ("key", "operator"):
        if not fields.has(name):
            missing(fields, name, TEXT_RULE)
    key, operator = fields.text("key") or "", fields.text("operator") or ""
    values = tuple(sorted(set(_texts(fields, "values"))))
    fields.close()
    if operator not in list(SelectorOperator):
        return LabelRequirement(
            key, SelectorOperator.IN, values
        ), f"operator {one_of(tuple(SelectorOperator))}"
    return LabelRequirement(key, SelectorOperator(operator), values), ""


def _texts(fields: Fields, name: str) -> Iterator[str]:
    """Yield the texts of a list, which may be empty."""
    for path, item in fields.items(name):
        if isinstance(item, str):
            yield item
        else:
            fields.notes.refuse(Code.WRONG_TYPE, path, advised(TEXT_RULE, item, None), item)


def _fault(requirement: LabelRequirement) -> str:
    """Return the reason why Kubernetes cannot use a requirement, or an empty text."""
    operator, values = requirement.operator, requirement.values
    if not LABEL_KEY.fits(requirement.key):
        return f"key {LABEL_KEY.rule}"
    if operator in _WITH_VALUES and not values:
        return f"operator {operator} needs values"
    if operator not in _WITH_VALUES and values:
        return f"operator {operator} must be without values"
    return "" if all(map(LABEL_VALUE.fits, values)) else f"value {LABEL_VALUE.rule}"
