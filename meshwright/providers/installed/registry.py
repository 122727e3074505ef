"""Providers by name: each is an entry point of an installed package, called with its options."""

from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Final

from meshwright.mesh.problems.spelling import nearest
from meshwright.providers.contract import CONTRACT, Provider, SourceError

GROUP: Final = "meshwright.providers"
"""Entry-point group of providers."""


class ProviderError(SourceError):
    """A provider in the settings is not installed or cannot be used; the message is one sentence."""


def providers(
    named: Mapping[str, Mapping[str, str]],
    result: Iterable[EntryPoint] | None = None,
    taken: Iterable[str] = (),
) -> Iterator[tuple[str, Provider]]:
    """Yield the named providers, created with their options; raises ProviderError.

    Other installed providers are not loaded. `taken` are the names of other sources.
    """
    if not named:
        return
    points = tuple(entry_points(group=GROUP) if result is None else result)
    for name, options in named.items():
        if name in taken:
            raise ProviderError(
                f"providers: {name!r} is the name of a built-in source; give the entry point another name"
            )
        yield name, _made(_point(name, points), options)


def _point(name: str, points: Iterable[EntryPoint]) -> EntryPoint:
    here = [point for point in points if point.name == name]
    if len(here) > 1:
        raise ProviderError(
            f"provider {name!r} is installed twice: {' and '.join(map(_shown, here))}; "
            "uninstall one of the two"
        )
    if not here:
        known = sorted({point.name for point in points})
        near = nearest(name, known)
        meant = f"did you mean {near}? " if near else ""
        raise ProviderError(
            f"provider {name!r} is not installed: {meant}entry points in the group "
            f"{GROUP}: {', '.join(known) or 'none'}"
        )
    return here[0]


def _made(point: EntryPoint, options: Mapping[str, str]) -> Provider:
    try:
        make = point.load()
    # A provider is code of another project, so its import can raise any exception.
    except (Exception, SystemExit) as error:
        raise ProviderError(f"{_shown(point)} cannot be loaded: {type(error).__name__}: {error}") from error
    try:
        made: Provider = make(dict(options))
    except (Exception, SystemExit) as error:
        text = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
        raise ProviderError(f"{_shown(point)} refuses its options: {text}") from error
    version = getattr(made, "contract", None)
    if version != CONTRACT:
        written = (
            "does not have the attribute contract, which names the version"
            if version is None
            else f"is written for version {version}"
        )
        raise ProviderError(
            f"{_shown(point)} {written} of meshwright.providers.contract.Provider; this "
            f"server needs version {CONTRACT}"
        )
    if not callable(getattr(made, "manifests", None)):
        raise ProviderError(f"{_shown(point)} does not have the method manifests()")
    seconds = getattr(made, "seconds", None)
    if not isinstance(seconds, int | float) or not 0.1 <= seconds <= 86400:
        raise ProviderError(f"{_shown(point)}: seconds is {seconds!r}: must be a number from 0.1 to 86400")
    return made


def _shown(point: EntryPoint) -> str:
    """Return the name of a provider's entry point for messages, with its distribution."""
    of = "" if point.dist is None else f" of {point.dist.name} {point.dist.version}"
    return f"provider {point.name} = {point.value}{of}"
