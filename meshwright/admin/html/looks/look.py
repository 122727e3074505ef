"""Type for the look of a debug page: label, forms, verdict and body."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from meshwright.admin.html.forms import Form
from meshwright.admin.html.frame import PageRequest
from meshwright.admin.html.markup import Markup
from meshwright.admin.html.tones import Tone, Verdict
from meshwright.admin.html.values import shown
from meshwright.admin.jsonable import Document


def _counts(result: Document) -> Verdict:
    counts = [f"{len(item)} {name}" for name, item in result.items() if isinstance(item, list | dict)]
    return Verdict(Tone.PLAIN, f"{', '.join(counts) or 'Present state'}.")


def _as_it_is(result: Document, _page_request: PageRequest) -> Iterable[Markup]:
    return (shown(result),)


@dataclass(frozen=True, slots=True)
class PageLook:
    """Rendering of a debug page from the page's JSON; without `label`, the title is made from the path."""

    label: str = ""
    verdict: Callable[[Document], Verdict] = _counts
    body: Callable[[Document, PageRequest], Iterable[Markup]] = _as_it_is
    forms: tuple[Form, ...] = ()
    shows: str = ""
    """Purpose of the page, one sentence for people."""
    subjects: frozenset[str] = frozenset()
    """Parameters for selecting one of the shown objects."""
