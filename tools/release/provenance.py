"""Provenance of a release: which commit and which tools made the files, as an in-toto statement.

The form is SLSA's provenance, version 1 (https://slsa.dev/spec/v1.0/provenance). The statement has the
SHA-256 of each file, the commit, the SHA-256 of each lock file with versions of the build, and the tools.
Time and machine are left out, because two builds of a commit are equal. The statement alone proves
little: the maker is known by a signature, either of the statement or of SHA256SUMS.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tools.release.archives import Files
from tools.release.checksums import digest

_STATEMENT: Final = "https://in-toto.io/Statement/v1"
_PREDICATE: Final = "https://slsa.dev/provenance/v1"
BUILD_TYPE: Final = "https://meshwright.dev/release/v1"
"""Identifier of `make release`; the files and their order are described in docs/extend/releasing.md."""
_LOCKS: Final = (
    "requirements/bootstrap.txt",
    "requirements/build.txt",
    "requirements/dev.txt",
    "requirements/run.txt",
)


@dataclass(frozen=True, slots=True)
class Build:
    """A build: the version of the project, the commit, and the versions of the tools by name."""

    version: str
    commit: str
    tools: Mapping[str, str]


def statement(build: Build, source: Files, built: Mapping[str, bytes]) -> str:
    """Return the statement about built files as JSON; `source` has the files of the commit."""
    commit = {"name": "meshwright", "digest": {"gitCommit": build.commit}}
    locks = [{"name": path, "digest": {"sha256": digest(source[path].content)}} for path in _LOCKS]
    result = {
        "_type": _STATEMENT,
        "subject": [{"name": name, "digest": {"sha256": digest(content)}} for name, content in built.items()],
        "predicateType": _PREDICATE,
        "predicate": {
            "buildDefinition": {
                "buildType": BUILD_TYPE,
                "externalParameters": {"version": build.version},
                "resolvedDependencies": [commit, *locks],
            },
            "runDetails": {"builder": {"id": BUILD_TYPE, "version": dict(sorted(build.tools.items()))}},
        },
    }
    return json.dumps(result, indent=2) + "\n"
