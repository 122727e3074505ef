"""When to believe a file: at once, or only after it has been the same for a while.

Editors delete and re-create, truncate and write, rename and rename back. A change that would take an
object out of force or bring a new error, or a text that ends within a line, is therefore believed only
when the file's content has stayed the same for the settle time. Everything else is believed at once. A
file that never comes to rest is believed after a multiple of that time.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from meshwright.mesh.problems.problem import Problems, Severity
from meshwright.providers.directory.file_form import Content
from meshwright.providers.directory.manifests import Manifests
from meshwright.providers.moments import Moment

PATIENCE = 10
"""After how many settle times a file that keeps changing is believed nevertheless."""


@dataclass(frozen=True, slots=True)
class Doubt:
    """A file's content that is not believed yet: since when it is the same, and since when in doubt."""

    content: Content
    since: Moment
    first: Moment


@dataclass(frozen=True, slots=True)
class Belief:
    """What is believed, and what is in doubt; `due` is when a doubt will be decided at the latest."""

    state: Manifests = field(default_factory=Manifests)
    doubts: Mapping[str, Doubt] = field(default_factory=dict)
    due: Moment | None = None


def settle(belief: Belief, observed: Mapping[str, Content], now: Moment, wait: timedelta) -> Belief:
    """Take what was observed of changed files (the whole content of each), and return what to believe.

    Files in doubt that `observed` does not name have stayed as they were.
    """
    if not observed and not belief.doubts:
        return belief
    contents = {file: doubt.content for file, doubt in belief.doubts.items()} | dict(observed)
    # All of them first, the doubtful too: an object that one file loses may have come up in another.
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
    """Return the files whose new content takes an object out of force, brings an error, or looks cut off."""
    old, new = state.holders, candidate.holders
    changed = [file for file in contents if old.get(file) is not new.get(file)]
    in_force = candidate.objects()
    found = set()
    for file in changed:
        before, after = old.get(file), new.get(file)
        gone = any(sourced.key not in in_force for sourced in (before.objects if before else ()))
        worse = after is not None and _new_errors(before.problems if before else (), after.problems)
        if gone or worse or _is_cut_off(contents[file]):
            found.add(file)
    return found


def _is_cut_off(content: Content) -> bool:
    """Say whether a text may be half-written: it ends within a line."""
    return isinstance(content, str) and not content.endswith(("\n", "\r"))


def _new_errors(before: Problems, after: Problems) -> bool:
    known = frozenset(before)
    return any(problem.severity is Severity.ERROR and problem not in known for problem in after)
