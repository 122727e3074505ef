"""Tests of the provenance: its whole form, and what it must not have."""

import hashlib
import json

from tools.release.archives import File
from tools.release.provenance import Build, statement

LOCKS = ("bootstrap", "build", "dev", "run")
SOURCE = {f"requirements/{name}.txt": File(name.encode()) for name in LOCKS}


def _sum(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def test_statement_has_files_commit_locks_and_tools() -> None:
    """The form is in-toto's statement with SLSA's provenance; time and machine are left out."""
    build = Build("1.2.3", "c0ffee", {"zlib": "1.3", "python": "3.11.2"})
    made = json.loads(statement(build, SOURCE, {"b.whl": b"wheel", "a.tgz": b"chart"}))
    assert made == {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [
            {"name": "b.whl", "digest": {"sha256": _sum(b"wheel")}},
            {"name": "a.tgz", "digest": {"sha256": _sum(b"chart")}},
        ],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": "https://meshwright.dev/release/v1",
                "externalParameters": {"version": "1.2.3"},
                "resolvedDependencies": [
                    {"name": "meshwright", "digest": {"gitCommit": "c0ffee"}},
                    *(
                        {"name": f"requirements/{name}.txt", "digest": {"sha256": _sum(name.encode())}}
                        for name in LOCKS
                    ),
                ],
            },
            "runDetails": {
                "builder": {
                    "id": "https://meshwright.dev/release/v1",
                    "version": {"python": "3.11.2", "zlib": "1.3"},
                }
            },
        },
    }
