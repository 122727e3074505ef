"""The kubectl program, and cheaper requests for tests that do not test the command."""

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from http.client import HTTPException
from pathlib import Path
from typing import Any, Final

from tests.kubernetes.tools.api_kinds import Kinds
from tests.kubernetes.tools.api_requests import Answer
from tests.tools.deadline import Deadline, wait_until

Document = dict[str, Any]

SECONDS: Final = 90.0
_PODS: Final = 2 * SECONDS
"""Pods start side by side, and each runs several programs."""
_APPLY: Final = "application/apply-patch+yaml"
_AS: Final = "fieldManager=kubectl&force=true&fieldValidation=Strict"
"""What `kubectl apply --server-side --force-conflicts` asks for."""


def program() -> str | None:
    """Return kubectl from MESHWRIGHT_KUBECTL or from the clone, or None; any version may be in PATH."""
    local = Path(__file__).parents[3] / ".kubectl" / "bin" / "kubectl"
    return shutil.which(os.environ.get("MESHWRIGHT_KUBECTL") or str(local))


def is_ready(pod: Document) -> bool:
    """Return whether a Pod is ready."""
    return has_condition(pod, "Ready")


def is_unready(pod: Document) -> bool:
    """Return whether a Pod was found not to be ready."""
    return has_condition(pod, "Ready", "False")


def has_condition(result: Document, kind: str, status: str = "True") -> bool:
    """Return whether an object has a condition with this status."""
    conditions = result.get("status", {}).get("conditions") or ()
    return (kind, status) in {(condition["type"], condition["status"]) for condition in conditions}


@dataclass(frozen=True, slots=True)
class Said:
    """The status and output of a kubectl command."""

    status: int
    out: str
    err: str


@dataclass(frozen=True, slots=True)
class Kubectl:
    """kubectl with a kubeconfig, in a namespace if given; its cache is a folder of the tests.

    `enter` is a command prefix if the API is in another network. `kinds` has the administrator's connections;
    without it, only the commands are available (`run`, and a call).
    """

    program: str
    kubeconfig: Path
    cache: Path
    namespace: str = ""
    enter: tuple[str, ...] = ()
    kinds: Kinds | None = field(default=None, repr=False, compare=False)

    def run(self, *words: str, given: str = "") -> Said:
        """Run kubectl to its end."""
        at = [f"--kubeconfig={self.kubeconfig}", f"--cache-dir={self.cache}"]
        where = [f"--namespace={self.namespace}"] if self.namespace else []
        done = subprocess.run(
            [*self.enter, self.program, *at, *where, *words],
            input=given,
            env={"HOME": str(self.cache), "PATH": os.environ["PATH"]},
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        return Said(done.returncode, done.stdout, done.stderr)

    def __call__(self, *words: str, given: str = "") -> str:
        """Return kubectl's output; the command must not fail."""
        answer = self.run(*words, given=given)
        assert answer.status == 0, f"kubectl {' '.join(words)}: {answer.out}{answer.err}"
        return answer.out

    def apply(self, *documents: Mapping[str, object]) -> None:
        """Apply objects like `kubectl apply --server-side --force-conflicts`."""
        for document in documents:
            self._applied(document)

    def status(self, *documents: Mapping[str, object]) -> None:
        """Apply the status of existing objects."""
        for document in documents:
            self._applied(document, "/status")

    def get(self, *words: str) -> Document:
        """Return the JSON of `kubectl get` with these words: an object, or a list of objects."""
        answer = self._got(*words)
        assert answer.status == HTTPStatus.OK, f"get {' '.join(words)}: {answer.message}"
        return dict(answer.body)

    def found(self, *words: str) -> Document | None:
        """Return an object, or None if it is missing."""
        answer = self._got(*words)
        assert answer.status in (HTTPStatus.OK, HTTPStatus.NOT_FOUND), answer.message
        return dict(answer.body) if answer.status == HTTPStatus.OK else None

    def until_there(self, *words: str) -> Document:
        """Wait until an object exists."""
        return self.until(lambda _: True, *words)

    def until_pod(self, pod: str, holds: Callable[[Document], object] = is_ready) -> None:
        """Wait until a Pod is ready, or meets a condition; on a timeout, report its description and logs."""
        deadline = Deadline(_PODS)
        while not ((answer := self._got("pod", pod)).status == HTTPStatus.OK and holds(dict(answer.body))):
            if deadline.has_passed():
                logs = self.run("logs", pod, "--all-containers", "--ignore-errors")
                raise AssertionError(f"{self('describe', 'pod', pod)}\n{logs.out}{logs.err}")
            time.sleep(deadline.pause())

    def until_job(self, job: str) -> None:
        """Wait until a Job is complete; on a timeout, report the descriptions and logs of its Pods."""
        deadline = Deadline(_PODS)
        while not self.get("job", job).get("status", {}).get("succeeded"):
            if deadline.has_passed():
                of = f"--selector=batch.kubernetes.io/job-name={job}"
                logs = self.run("logs", of, "--all-containers", "--ignore-errors", "--tail=50")
                raise AssertionError(f"{self('describe', 'pod', of)}\n{logs.out}{logs.err}")
            time.sleep(deadline.pause())

    def until(self, holds: Callable[[Document], object], *words: str, seconds: float = SECONDS) -> Document:
        """Get objects until they meet the condition, and return them; tolerate an unreachable API server."""
        last: Document = {}

        def is_so() -> object:
            nonlocal last
            try:
                answer = self._got(*words)
            except (OSError, HTTPException) as error:
                last = {"message": str(error)}
                return False
            last = dict(answer.body)
            return answer.status == HTTPStatus.OK and holds(last)

        wait_until(is_so, seconds, lambda: json.dumps(last)[-3000:])
        return last

    def delete(self, *words: str) -> None:
        """Delete an object, if it exists, without waiting for its end."""
        self.delete_at(self._kinds.asked(words, self.namespace))

    def delete_at(self, path: str) -> None:
        """Delete the object or the objects at a path, if they exist and their kind is served."""
        answer = self._kinds.ask("DELETE", path)
        assert answer.status < HTTPStatus.BAD_REQUEST or answer.status == HTTPStatus.NOT_FOUND, answer.message

    def dry_run(self, document: Document) -> Answer:
        """Return the response to `kubectl create --dry-run=server` of an object."""
        path = self._kinds.of(document).path(document["metadata"].get("namespace", self.namespace))
        return self._kinds.ask("POST", f"{path}?dryRun=All&fieldValidation=Strict", document)

    def until_answered(self, review: Document, holds: Callable[[Document], object]) -> None:
        """Create a review, such as a SubjectAccessReview, until its answer meets the condition."""
        last: Document = {}

        def is_so() -> object:
            nonlocal last
            last = dict(self._kinds.ask("POST", self._kinds.of(review).path(self.namespace), review).body)
            return holds(last)

        wait_until(is_so, SECONDS, lambda: last)

    def _got(self, *words: str) -> Answer:
        return self._kinds.ask("GET", self._kinds.asked(words, self.namespace))

    def _applied(self, document: Mapping[str, Any], subresource: str = "") -> None:
        metadata = document["metadata"]
        namespace = metadata.get("namespace", self.namespace or "default")
        path = self._kinds.of(document).path(namespace, metadata["name"])
        answer = self._kinds.ask("PATCH", f"{path}{subresource}?{_AS}", document, _APPLY)
        assert answer.status in (HTTPStatus.OK, HTTPStatus.CREATED), f"apply {path}: {answer.message}"

    @property
    def _kinds(self) -> Kinds:
        assert self.kinds is not None, "it has no connection of its own: use the command"
        return self.kinds
