"""Tests of the developer pages: names exist, and code runs."""

import ast
import importlib
import itertools
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from meshwright.cli.main import app

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
INSIDE = ("architecture.md", "engine.md", "glossary.md")
"""Pages about the code; the others are for users."""

_IMPORTS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]
PACKAGES = tuple(
    root_package
    for root_package in _IMPORTS["root_packages"]
    if root_package not in ("benchmarks", "demo", "protos", "tools")
)
_NAME = re.compile(rf"(?<![\w./-])((?:{'|'.join(PACKAGES)})(?:[./]\w+)+)(?![\w-])")
_BLOCK = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_PACKAGE = re.compile(r"^\| `([\w/]+)/` \|", re.MULTILINE)
_ROOMS = ("meshwright", "meshwright/kubernetes")
"""Folders whose packages have a line each."""
_WORD = re.compile(r"^\| \*\*(.+?)\*\*.*\| `(.+?)` \|$", re.MULTILINE)


def _path(name: str) -> Path:
    """Return the path of a page below docs/ by its name, which is unique."""
    (path,) = DOCS.rglob(name)
    return path


def _page(name: str) -> str:
    return _path(name).read_text("utf-8")


def _missing(name: str) -> bool:
    """Return whether no file and no module of ours has a name, such as `meshwright.engine.graph.sources`."""
    if (ROOT / name).exists():
        return False
    parts = name.replace("/", ".").removesuffix(".py").split(".")
    for length in range(len(parts), 0, -1):
        path = ROOT.joinpath(*parts[:length])
        if path.is_dir() or path.with_suffix(".py").is_file():
            break
    result: Any = importlib.import_module(".".join(parts[:length]))
    for part in parts[length:]:
        if not hasattr(result, part) and part not in getattr(result, "__annotations__", {}):
            return True
        result = getattr(result, part, None)
    return False


@pytest.mark.parametrize("page", INSIDE)
def test_every_module_and_name_on_a_page_exists(page: str) -> None:
    """Names that begin with one of our packages are checked in text, tables, pictures and code."""
    names = set(_NAME.findall(_LINK.sub("", _page(page))))
    assert names
    assert sorted(filter(_missing, names)) == []


def test_missing_names_are_found() -> None:
    """This is the control of the test above: a module, a file, a name in a module, and a name in a class."""
    names = (
        "meshwright.engine.grapf",
        "xds/protocol/streams.py",
        "meshwright.engine.graph.source",
        "meshwright.engine.graph.Graph.aply",
    )
    assert [name for name in names if not _missing(name)] == []
    assert not _missing("meshwright.engine.graph.Graph.apply")


def test_every_package_has_its_line_in_the_table() -> None:
    """The table of packages in docs/understand/architecture.md is complete."""
    inner = [path.parent for room in _ROOMS for path in (ROOT / room).glob("*/__init__.py")]
    packages = {*PACKAGES, *(str(path.relative_to(ROOT)) for path in inner)} - {*_ROOMS}
    assert sorted(_PACKAGE.findall(_page("architecture.md"))) == sorted(packages)


def test_package_diagram_shows_all_direct_imports() -> None:
    """Each arrow is an import, no arrow can be left out, and every other import follows a chain of arrows."""
    labels, arrows = _diagram(_page("architecture.md"))
    packages = {*_PACKAGE.findall(_page("architecture.md")), "protos"}
    assert {_folder(label) for label in labels} == packages
    imports = _imports_between(packages)
    needed = {
        (package, other)
        for package, others in imports.items()
        for other in others
        if not any(other in _reachable(imports, third) for third in others - {other})
    }
    assert sorted(arrows) == sorted(needed)


_SUBGRAPH = re.compile(r"^\s+subgraph [^\n]+\n(.*?)^\s+end$", re.MULTILINE | re.DOTALL)
_NODE = re.compile(r'^\s+(\w+)(?:\["([\w/]+)"\])?$', re.MULTILINE)
_ARROWS = re.compile(r"^\s+(\w+) --> (.+)$", re.MULTILINE)
_IMPORT = re.compile(r"^\s*(?:from|import) ((?:meshwright|catalog|certs|protos|xds)[\w.]*)", re.MULTILINE)


def _folder(label: str) -> str:
    """Return the folder of a node of the diagram: `meshwright/kubernetes/cni` for `kubernetes/cni`."""
    return label if label in ("catalog", "certs", "protos", "xds") else f"meshwright/{label}"


def _diagram(page: str) -> tuple[set[str], set[tuple[str, str]]]:
    """Return the labels of the page's Mermaid diagram, and its arrows between folders."""
    [block] = [match[2] for match in _BLOCK.finditer(page) if match[1] == "mermaid"]
    nodes = (_NODE.findall(group) for group in _SUBGRAPH.findall(block))
    labels = {name: label or name for name, label in itertools.chain.from_iterable(nodes)}
    arrows = {
        (_folder(labels[left]), _folder(labels[right]))
        for left, targets in _ARROWS.findall(block)
        for right in targets.split(" & ")
    }
    return {*labels.values()}, arrows


def _imports_between(packages: set[str]) -> dict[str, set[str]]:
    """Return the other packages that each package imports, without the generated messages in `protos/`."""
    dotted = {package.replace("/", "."): package for package in packages}
    imports: dict[str, set[str]] = {package: set() for package in packages}
    for package in packages - {"protos"}:
        for path in (ROOT / package).rglob("*.py"):
            for name in _IMPORT.findall(path.read_text("utf-8")):
                prefixes = (".".join(name.split(".")[:length]) for length in (1, 2, 3))
                imports[package] |= {dotted[prefix] for prefix in prefixes if prefix in dotted} - {package}
    return imports


def _reachable(imports: dict[str, set[str]], package: str) -> set[str]:
    """Return the packages that a package imports, directly or through others."""
    return imports[package].union(*(_reachable(imports, other) for other in imports[package]))


def test_files_of_a_kind_on_the_page_are_all_that_name_it() -> None:
    """The page's list of files for TrafficSplit has exactly the files that name it."""
    message = _page("architecture.md").partition("### A kind of objects")[2].partition("\n### ")[0]
    column = " ".join(line.split(" | ")[2] for line in message.splitlines() if re.match(r"\| \d", line))
    files = {str(path.relative_to(ROOT)) for package in PACKAGES for path in (ROOT / package).rglob("*.py")}
    naming = {file for file in files if _names_traffic_splits((ROOT / file).read_text("utf-8"))}
    assert sorted(re.findall(r"`(.+?)`", column)) == sorted(naming)


def _names_traffic_splits(source: str) -> bool:
    """Return whether a module's code has a name of the kind; only sources with its letters are parsed."""
    names = {"TrafficSplit", "TRAFFIC_SPLIT"}
    return any(name in source for name in names) and not names.isdisjoint(_used(source))


def _used(source: str) -> set[str]:
    """Return the names in a module's code, without its text."""
    result = set[str]()
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Name(name) | ast.ClassDef(name) | ast.alias(name) | ast.Attribute(attr=name):
                result.add(name)
            case _:
                pass
    return result


def test_glossary_is_sorted_and_every_term_has_a_place_in_the_code() -> None:
    """There is one line for each term, and the last column is a name of ours."""
    page = _page("glossary.md")
    words = _WORD.findall(page)
    assert len(words) == page.count("\n| **")
    assert [word for word, _ in words] == sorted(word for word, _ in words)
    assert [
        where for _, where in words if not _NAME.fullmatch(where.rstrip("/")) and not (ROOT / where).is_dir()
    ] == []


def test_engine_page_example_runs() -> None:
    """All blocks of the page run in one module. Their assertions are the page's claims."""
    page = _page("engine.md")
    blocks = [match for match in _BLOCK.finditer(page) if match[1] == "python"]
    space: dict[str, Any] = {"__name__": "engine_page"}
    for block in blocks:
        above = "\n" * page.count("\n", 0, block.start(2))  # so that a failure names the page's line
        exec(compile(above + block[2], _path("engine.md"), "exec"), space)  # noqa: S102 - our own page
    assert sum(block[2].count("assert ") for block in blocks) >= 10


def test_catalog_diagram_shows_imports() -> None:
    """Each arrow between two modules is an import of the left one by the right one."""
    catalog = ROOT / "catalog"
    modules = {
        module.stem: module
        for room in ("relations", "policy")
        for module in (catalog / room).rglob("*.py")
        if module.parent.name != "values"  # what the modules make, and no step of it
    }
    text = ast.get_docstring(ast.parse((catalog / "__init__.py").read_text("utf-8"))) or ""
    steps = [
        line.strip().split(" -> ") for line in text.splitlines() if " -> " in line and "View" not in line
    ]
    arrows = [
        (word, right)
        for line in steps
        for left, right in itertools.pairwise(line)
        for word in left.split(", ")
        if not word.startswith("[")
    ]
    assert len(arrows) > 15
    assert [arrow for arrow in arrows if not _imports(modules[arrow[1]], modules[arrow[0]])] == []


def _imports(module: Path, other: Path) -> bool:
    room = ".".join(other.parent.relative_to(ROOT).parts)
    tree = ast.walk(ast.parse(module.read_text("utf-8")))
    import_froms = [item for item in tree if isinstance(item, ast.ImportFrom)]
    return any(
        import_from.module == f"{room}.{other.stem}"
        or (import_from.module == room and other.stem in {n.name for n in import_from.names})
        for import_from in import_froms
    )


def test_commands_on_the_pages_exist() -> None:
    """Every word after `meshwright` on a page is a command."""
    known = {*get_command(app).commands}  # type: ignore[attr-defined]
    named = {
        (page.name, word)
        for page in [*DOCS.rglob("*.md"), ROOT / "README.md"]
        for word in re.findall(r"(?:`|\$ |-- |\| )meshwright ([a-z][a-z-]+)", page.read_text("utf-8"))
    }
    assert {item for item in named if item[1] not in known} == set()
