"""Tests of installed third-party providers: errors at loading, and the use of their answers."""

import asyncio
import threading
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from importlib.metadata import Distribution, EntryPoint
from pathlib import Path

import pytest

from meshwright.controller.errors import SettingsError
from meshwright.controller.settings.settings import load
from meshwright.mesh.origins import FromSource
from meshwright.mesh.problems.problem import Problem
from meshwright.mesh.problems.tally import Tally
from meshwright.providers.contract import CONTRACT
from meshwright.providers.installed.registry import GROUP, ProviderError, providers
from meshwright.providers.installed.source import ProviderSource
from meshwright.specs.reader import ManifestReading, read
from tests.tools.wheels import install, wheel

WELL = """
class Well:
    contract = 1
    seconds = 0.1
    def __init__(self, options):
        if options:
            raise ValueError("it takes no options")
    def manifests(self):
        return []
"""


def _found(tmp_path: Path, name: str, code: str, entry: str = "well") -> tuple[EntryPoint, ...]:
    """Install a package with one provider, and return its entry point."""
    points = f"[{GROUP}]\n{entry} = {name}:Well\n"
    site = install(tmp_path / name, wheel(tmp_path, name, {f"{name}.py": code}, points))
    (made,) = Distribution.discover(path=[str(site)])
    return tuple(made.entry_points)


@pytest.mark.parametrize(
    ("number", "code", "sentence"),
    [
        (
            1,
            "import nothing_of_that_name",
            "cannot be loaded: ModuleNotFoundError: No module named 'nothing_",
        ),
        (2, WELL.replace("Well", "Bad"), "cannot be loaded: AttributeError: "),
        (8, "raise SystemExit(1)", "cannot be loaded: SystemExit: 1"),
        (
            3,
            WELL.replace("contract = 1", "contract = 2"),
            "is written for version 2 of meshwright.providers.contract.",
        ),
        (
            4,
            WELL.replace("contract = 1", ""),
            (
                "does not have the attribute contract, which names the version of "
                "meshwright.providers.contract."
            ),
        ),
        (5, WELL.replace("def manifests", "def objects"), "does not have the method manifests()"),
        (6, WELL.replace("0.1", "0"), "seconds is 0: must be a number from 0.1 to 86400"),
        (7, WELL, "refuses its options: it takes no options"),
    ],
)
def test_invalid_provider_is_an_error_with_its_entry_point(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, number: int, code: str, sentence: str
) -> None:
    """The message names the entry point, its distribution and the cause."""
    name = f"well_of_others_{number}"
    monkeypatch.syspath_prepend(str(tmp_path / name))
    entry_points = _found(tmp_path, name, code)
    with pytest.raises(ProviderError) as raised:
        tuple(providers({"well": {"a": "b"} if "no options" in sentence else {}}, entry_points))
    assert str(raised.value).startswith(f"provider well = {name}:Well of {name} 1.0")
    assert sentence in str(raised.value)


def test_missing_duplicate_or_reserved_provider_name_is_an_error(tmp_path: Path) -> None:
    """The error is found without loading any of the providers."""
    entry_points = (*_found(tmp_path, "one_of_two", "1 / 0"), *_found(tmp_path, "two_of_two", "1 / 0"))
    with pytest.raises(
        ProviderError, match="'wel' is not installed: did you mean well\\? entry points in the group"
    ):
        tuple(providers({"wel": {}}, entry_points))
    with pytest.raises(ProviderError, match=r"installed twice: .* of one_of_two 1.0 and .* of two_of"):
        tuple(providers({"well": {}}, entry_points))
    with pytest.raises(ProviderError, match="'dns' is the name of a built-in source"):
        tuple(providers({"dns": {}}, entry_points, taken=("directory", "dns")))
    assert tuple(providers({}, entry_points)) == ()


def test_valid_provider_is_created_under_its_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It has the contract's version and returns its manifests."""
    monkeypatch.syspath_prepend(str(tmp_path / "well_made"))
    ((name, made),) = providers({"well": {}}, _found(tmp_path, "well_made", WELL))
    assert (name, made.contract, list(made.manifests())) == ("well", CONTRACT, [])


@pytest.mark.parametrize(
    ("told", "read"),
    [
        ("", {}),
        ("mine", {"mine": {}}),
        (
            "mine:url=http://10.0.0.5/a=b, seconds=5 ;other",
            {"mine": {"url": "http://10.0.0.5/a=b", "seconds": "5"}, "other": {}},
        ),
        ({"mine": {"seconds": 5}, "other": None}, {"mine": {"seconds": "5"}, "other": {}}),
    ],
)
def test_providers_are_configured_as_text_or_yaml(tmp_path: Path, told: object, read: object) -> None:
    """Options are text in both forms."""
    assert load({"mesh": tmp_path, "state": tmp_path, "providers": told}).providers == read


@pytest.mark.parametrize("told", ["mine:token=hush", {"mine": {"token": "hush"}}])
def test_provider_options_are_redacted_in_output(tmp_path: Path, told: object) -> None:
    """An option may be a secret, so its name is shown and its value is not."""
    settings = load({"mesh": tmp_path, "state": tmp_path, "providers": told})
    assert settings.providers["mine"]["token"] == "hush"
    assert settings.model_dump(mode="json")["providers"] == {"mine": {"token": "[redacted]"}}
    assert "hush" not in repr(settings)


@pytest.mark.parametrize(
    "told", ["mine:token=hush,other", {"mine": {"token": ["hush"]}}, {"mine": "token=hush"}]
)
def test_error_of_invalid_provider_settings_hides_the_options(tmp_path: Path, told: object) -> None:
    """The error names the setting and never the value of an option, which may be a secret."""
    with pytest.raises(SettingsError) as raised:
        load({"mesh": tmp_path, "state": tmp_path, "providers": told})
    assert "providers" in str(raised.value)
    assert "hush" not in str(raised.value)


class SettableProvider:
    """A provider with an answer, or an exception, that the test sets."""

    contract = CONTRACT
    seconds = 0.001

    def __init__(self) -> None:
        self.says: Callable[[], list[Mapping[str, object]]] = list

    def manifests(self) -> list[Mapping[str, object]]:
        """Return the answer that the test has set."""
        return self.says()


def _workload(name: str, address: str = "10.0.0.1") -> Mapping[str, object]:
    return {
        "apiVersion": "meshwright.dev/v1alpha1",
        "kind": "Workload",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"address": address, "serviceAccount": "web", "uuid": name},
    }


def _source(provider: SettableProvider, hold: float = 0) -> ProviderSource:
    return ProviderSource(
        "told",
        provider,
        lambda: datetime.now(UTC),
        hold=timedelta(seconds=hold),
        patience=timedelta(seconds=0.05),
        at_the_start=timedelta(seconds=5),
    )


def _names(source: ProviderSource) -> list[str]:
    return [key.name for key in source.objects()]


def _codes(source: ProviderSource) -> list[str]:
    return [problem.code for problem in source.problems()]


async def test_answer_without_valid_manifests_keeps_the_objects(caplog: pytest.LogCaptureFixture) -> None:
    """The error is problem MW1112 until the next good answer."""
    answer = SettableProvider()
    source = _source(answer)
    answer.says = lambda: [_workload("a")]
    await source.first()
    assert (_names(source), source.counts().good, source.freshness().error) == (["a"], 1, "")
    for bad in (["x"], [{"a": {1, 2}}], [{"a": float("nan")}], [{"a": "\ud800"}]):
        answer.says = lambda bad=bad: bad  # type: ignore[misc]
        await source.first()
        assert (_names(source), _codes(source)) == (["a"], ["MW1112"])
        assert source.freshness().error_since is not None
    answer.says = lambda: [_workload("a"), _workload("b")]
    await source.first()
    assert (_names(source), _codes(source), source.freshness().error) == (["a", "b"], [], "")


async def test_timeout_raised_by_the_provider_is_reported_in_its_words() -> None:
    """The source's own timeout has another message."""
    answer = SettableProvider()

    def late() -> list[Mapping[str, object]]:
        raise TimeoutError("the registry is silent")

    answer.says = late
    source = _source(answer)
    await source.first()
    assert source.freshness().error == "fails: TimeoutError: the registry is silent"


class _UnprintableError(Exception):
    """An exception whose text cannot be read."""

    def __str__(self) -> str:
        raise ValueError("mute")


@pytest.mark.parametrize(
    "raised", [StopIteration("no more"), SystemExit(3), _UnprintableError(), ValueError("\ud800")]
)
async def test_provider_is_asked_again_after_any_exception(raised: BaseException) -> None:
    """The error names the exception's type, in text that can be encoded."""
    answer = SettableProvider()

    def failing() -> list[Mapping[str, object]]:
        raise raised

    answer.says = failing
    source = _source(answer)
    await source.first()
    error = source.freshness().error
    assert error.startswith(f"fails: {type(raised).__name__}: ")
    assert error.encode()
    answer.says = lambda: [_workload("a")]
    await source.first()
    assert _names(source) == ["a"]


async def test_exception_while_reading_an_answer_is_a_provider_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next answer is read as usual."""
    answer = SettableProvider()
    source = _source(answer)

    def deep(*_: object) -> None:
        raise RecursionError("too deep")

    answer.says = lambda: [_workload("a")]
    with monkeypatch.context() as patched:
        patched.setattr("meshwright.providers.installed.source.read", deep)
        await source.first()
    assert source.freshness().error == "fails: RecursionError: too deep"
    await source.first()
    assert _names(source) == ["a"]


async def test_answer_is_read_in_another_thread_than_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer may have thousands of manifests, which would block the loop."""
    answer, threads = SettableProvider(), set[int]()
    source = _source(answer)

    def reading(document: object, origin: FromSource, tally: Tally) -> ManifestReading:
        threads.add(threading.get_ident())
        return read(document, origin, tally)

    monkeypatch.setattr("meshwright.providers.installed.source.read", reading)
    answer.says = lambda: [_workload("a")]
    await source.first()
    assert _names(source) == ["a"]
    assert threads.isdisjoint({threading.get_ident()})


async def test_late_answer_is_used_for_the_next_question() -> None:
    """A provider that always takes longer than its limit is not asked twice at the same time."""
    answer, late = SettableProvider(), threading.Event()
    asked = 0

    def slow() -> list[Mapping[str, object]]:
        nonlocal asked
        asked += 1
        late.wait(60)
        return [_workload(f"a{asked}")]

    answer.says = slow
    source = _source(answer)
    source._at_the_start = 0.01
    await source.first()
    assert source.freshness().error == "has not answered within 0.01 s"
    late.set()
    async with asyncio.timeout(30):
        while not source._pending_call or not source._pending_call.done():
            await asyncio.sleep(0.001)
    late.clear()
    await source.first()
    late.set()
    assert (_names(source), asked, source.freshness().error) == (["a1"], 1, "")


async def test_bad_manifest_affects_only_its_own_object() -> None:
    """As in a file, the object keeps its last good form, and the others are updated."""
    answer = SettableProvider()
    source = _source(answer)
    answer.says = lambda: [_workload("a"), _workload("b")]
    await source.first()
    answer.says = lambda: [_workload("a", "nowhere"), _workload("b", "10.0.0.2")]
    await source.first()
    values = {key.name: sourced_object.value for key, sourced_object in source.objects().items()}
    assert (_names(source), source.counts().stale) == (["a", "b"], 1)
    assert "10.0.0.2" in str(values["b"])
    first: Problem = source.problems()[0]
    assert str(first.origin) == "told (Workload shop/a)"


async def test_order_of_an_answer_changes_no_objects() -> None:
    """The same manifests in another order give the same objects, so followers have no work."""
    answer = SettableProvider()
    source = _source(answer)
    answer.says = lambda: [_workload("a"), _workload("b")]
    await source.first()
    before = source.objects()
    answer.says = lambda: [_workload("b"), _workload("a")]
    await source.first()
    assert source.objects() is before


async def test_sudden_empty_answer_is_held() -> None:
    """As for every source, the objects stay in force; with a hold of 0 they are removed at once."""
    answer = SettableProvider()
    source = _source(answer, hold=1000)
    answer.says = lambda: [_workload("a")]
    await source.first()
    answer.says = list
    await source.first()
    assert (_names(source), _codes(source), source.freshness().held) == (
        ["a"],
        ["MW1110"],
        ("all manifests",),
    )
    sure = _source(answer)
    answer.says = lambda: [_workload("a")]
    await sure.first()
    answer.says = list
    await sure.first()
    assert _names(sure) == []


async def test_hanging_provider_is_asked_only_once_until_it_answers() -> None:
    """A late answer is used, and meanwhile only one thread waits."""
    answer, hanging, asked = SettableProvider(), threading.Event(), 0

    def slow() -> list[Mapping[str, object]]:
        nonlocal asked
        asked += 1
        hanging.wait(60)
        return [_workload("a")]

    answer.says = slow
    source = ProviderSource(
        *("told", answer, lambda: datetime.now(UTC)),
        patience=timedelta(seconds=0.01),
        at_the_start=timedelta(seconds=0.01),
    )
    await source.first()
    changes = asyncio.Event()
    running = asyncio.create_task(source.run(changes.set))
    while source.freshness().error != "has not answered within 0.01 s":
        await asyncio.sleep(0.01)
    assert asked == 1
    hanging.set()
    async with asyncio.timeout(30):
        while _names(source) != ["a"]:
            await changes.wait()
            changes.clear()
    assert source.freshness().error == ""
    running.cancel()
    await asyncio.wait([running])
