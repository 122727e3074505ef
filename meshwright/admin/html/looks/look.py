"""What a page looks like: its name, what can be asked of it, its verdict and its body."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from meshwright.admin.html.forms import Form
from meshwright.admin.html.frame import PageRequest
from meshwright.admin.html.markup import Markup
from meshwright.admin.html.tones import Tone, Verdict
from meshwright.admin.html.values import shown
from meshwright.admin.jsonable import Document


def _counts(found: Document) -> Verdict:
    counts = [f"{len(each)} {name}" for name, each in found.items() if isinstance(each, list | dict)]
    return Verdict(Tone.PLAIN, f"{', '.join(counts) or 'As it is now'}.")


def _as_it_is(found: Document, _asked: PageRequest) -> Iterable[Markup]:
    return (shown(found),)


@dataclass(frozen=True, slots=True)
class PageLook:
    """How a page's JSON is drawn; of a page without a `label` its path is the name."""

    label: str = ""
    verdict: Callable[[Document], Verdict] = _counts
    body: Callable[[Document, PageRequest], Iterable[Markup]] = _as_it_is
    forms: tuple[Form, ...] = ()
    shows: str = ""
    """What it shows, in a sentence for people."""
    subjects: frozenset[str] = frozenset()
    """The parameters that ask for one thing of all that it shows."""
