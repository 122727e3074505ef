"""Which names a wheel brings, by its table of contents: the binary distribution format of PyPA."""

import pytest

from tools.top_level_names import lines, top_level


@pytest.mark.parametrize(
    ("contents", "names"),
    [
        (["six.py", "six-1.17.0.dist-info/METADATA"], {"six"}),
        (
            ["yaml/__init__.py", "_yaml/__init__.py", "yaml/_yaml.cpython-311-x86_64-linux-gnu.so"],
            {"yaml", "_yaml"},
        ),
        (["google/protobuf/any.py"], {"google"}),
        (
            ["_cffi_backend.cpython-311-x86_64-linux-gnu.so", "_x.pyd", "_y.abi3.so"],
            {"_cffi_backend", "_x", "_y"},
        ),
        (["a-1.data/purelib/b/__init__.py", "a-1.data/platlib/c.py", "a-1.data/scripts/d"], {"b", "c"}),
        (["a-1.data/data/share/x.py", "distutils-precedence.pth", "README.md", "not-a-name/x.py"], set()),
    ],
)
def test_the_names_of_a_wheel(contents: list[str], names: set[str]) -> None:
    """Packages, namespaces, modules and libraries; neither metadata nor scripts, data and .pth files."""
    assert top_level(contents) == names


def test_the_file_is_sorted_and_says_where_it_is_from() -> None:
    """The same names, the same file."""
    header, maker, *names = lines(2, ["b", "a", "b"], "2026-01-01")
    assert names == ["a", "b"]
    assert "of the 2 most downloaded projects of PyPI, 2026-01-01" in header
    assert maker == "# Made by tools/top_level_names.py."
