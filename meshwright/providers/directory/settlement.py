"""Delay before a file's content is accepted: zero, or until the content has been stable for a while.

Editors delete and re-create files, truncate and write, rename and rename back. Three changes look like a
half-finished edit: one that removes an object, one with a new error, and a text that ends within a line. Such
a change is accepted after the content has been unchanged for the settle time; any other is accepted at once.
A file that keeps changing is accepted after a multiple of the settle time.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from meshwright.mesh.problems.problem import Problems, Severity
from meshwright.providers.directory.file_form import Content
from meshwright.providers.directory.manifests import Manifests
from meshwright.providers.moments import Moment

PATIENCE = 10
"""Number of settle times after which a file that keeps changing is accepted."""


@dataclass(frozen=True, slots=True)
class Doubt:
    """Content that is not accepted yet: `since` when it is unchanged, and the `first` moment of doubt."""

    content: Content
    since: Moment
    first: Moment


@dataclass(frozen=True, slots=True)
class Belief:
    """The accepted manifests, and contents of files in doubt; `due` is the moment of the next decision."""

    state: Manifests = field(default_factory=Manifests)
    doubts: Mapping[str, Doubt] = field(default_factory=dict)
    due: Moment | None = None


def settle(belief: Belief, observed: Mapping[str, Content], now: Moment, wait: timedelta) -> Belief:
    """Return the belief after new contents of files (`observed`, each complete).

    Files in doubt without a new content are unchanged.
    """
    if not observed and not belief.doubts:
        return belief
    contents = {file: doubt.content for file, doubt in belief.doubts.items()} | dict(observed)
    # Apply all contents first, doubtful ones too: an object may have moved from one file to another.
    candidate = belief.state.apply_all(contents)
    doubts: dict[str, Doubt] = {}
    for file in sorted(_doubtful(belief.state, candidate, contents)):
        doubt = _doubt(belief.doubts.get(file), contents[file], now)
        if now - doubt.since < wait and now - doubt.first < PATIENCE * wait:
            doubts[file] = doubt
    believed = {file: content for file, content in contents.items() if file not in doubts}
    state = candidate if not doubts else belief.state.apply_all(believed)
    dues = [min(doubt.since + wait, doubt.first + PATIENCE * wait) for doubt in doubts.values()]
    return Belief(state, doubts, min(dues, default=None))


def _doubt(before: Doubt | None, content: Content, now: Moment) -> Doubt:
    if before is None:
        return Doubt(content, now, now)
    return before if before.content == content else Doubt(content, now, before.first)


def _doubtful(state: Manifests, candidate: Manifests, contents: Mapping[str, Content]) -> set[str]:
    """Return the files whose new content removes an object, brings an error, or looks cut off."""
    old, new = state.holders, candidate.holders
    changed = [file for file in contents if old.get(file) is not new.get(file)]
    in_force = candidate.objects()
    result = set()
    for file in changed:
        before, after = old.get(file), new.get(file)
        gone = any(sourced.key not in in_force for sourced in (before.objects if before else ()))
        worse = after is not None and _new_errors(before.problems if before else (), after.problems)
        if gone or worse or _is_cut_off(contents[file]):
            result.add(file)
    return result


def _is_cut_off(content: Content) -> bool:
    """Return whether a text may be half-written, because it ends within a line."""
    return isinstance(content, str) and not content.endswith(("\n", "\r"))


def _new_errors(before: Problems, after: Problems) -> bool:
    known = frozenset(before)
    return any(problem.severity is Severity.ERROR and problem not in known for problem in after)
