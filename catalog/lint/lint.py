"""A view as problems look at it: with indexes of their own, which cost nothing where nobody lints."""

from typing import Any, Final

from catalog.store.view import View
from engine.declared import Declarations, Declared


class Lint:
    """A view, and what problems alone search it by (`IN_LINT`); one for each view that is linted."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.graph = view.graph
        self.made: dict[Declared[Any, Any], Any] = {}
        IN_LINT.make(self)
        self.graph.apply(())  # the indexes take in what the view knows already


IN_LINT: Final = Declarations[Lint]()
"""What every Lint has; see engine.declared."""
