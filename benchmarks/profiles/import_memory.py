"""Command `python -m benchmarks.profiles.import_memory MODULE...`: memory that each imported package adds.

Each measurement needs a fresh process. A package is charged for creating and executing its own modules,
without the modules that they import. `python` is the memory of the interpreter before the first import.
"""

import importlib
import importlib.abc
import json
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any, Final

PYTHON: Final = "python"
STANDARD: Final = "standard library"


def resident() -> int:
    """Return the resident memory of this process in KiB."""
    lines = Path("/proc/self/smaps_rollup").read_text("ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Rss:"))


class Scale:
    """Accounts of memory by package: new memory is charged to the innermost running import."""

    def __init__(self) -> None:
        self._last = resident()
        self._importing = [PYTHON]
        self.kibibytes: dict[str, int] = defaultdict(int, {PYTHON: self._last})

    def during(self, name: str, work: Callable[[], Any]) -> Any:  # noqa: ANN401 - whatever the work returns
        """Charge memory added during `work`, without nested imports, to the package of a module."""
        self._charge()
        top = name.partition(".")[0]
        self._importing.append(STANDARD if top in sys.stdlib_module_names else top)
        try:
            return work()
        finally:
            self._charge()
            self._importing.pop()

    def _charge(self) -> None:
        now = resident()
        self.kibibytes[self._importing[-1]] += now - self._last
        self._last = now


class MeasuredLoader(importlib.abc.Loader):
    """Wrapper of a module loader that charges added memory to the module's package."""

    def __init__(self, loader: Any, scale: Scale) -> None:  # noqa: ANN401 - a loader, with more than its protocol has
        self._loader = loader
        self._scale = scale

    def __getattr__(self, name: str) -> object:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Create the module and charge its memory; shared libraries are mapped into memory here."""
        made: ModuleType | None = self._scale.during(spec.name, lambda: self._loader.create_module(spec))
        return made

    def exec_module(self, module: ModuleType) -> None:
        """Execute the module and charge the added memory to its package."""
        self._scale.during(module.__name__, lambda: self._loader.exec_module(module))


class Finder(importlib.abc.MetaPathFinder):
    """Finder of modules that asks the other finders, and wraps the loaders they return."""

    def __init__(self, scale: Scale) -> None:
        self._scale = scale

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find a module with the other finders, and wrap its loader."""
        for finder in sys.meta_path:
            # This finder is the first of `sys.meta_path`, and must not ask itself.
            if finder is not self and (module_spec := finder.find_spec(fullname, path, target)) is not None:
                # Namespace packages have no loader, and some old loaders lack this method.
                if hasattr(module_spec.loader, "exec_module"):
                    module_spec.loader = MeasuredLoader(module_spec.loader, self._scale)
                return module_spec
        return None


def weighed(modules: Sequence[str]) -> dict[str, int]:
    """Import modules, and return the KiB added by each package, the largest first."""
    scale = Scale()
    sys.meta_path.insert(0, Finder(scale))
    for name in modules:
        importlib.import_module(name)
    return dict(sorted(scale.kibibytes.items(), key=lambda item: (-item[1], item[0])))


if __name__ == "__main__":
    print(json.dumps(weighed(sys.argv[1:])))
