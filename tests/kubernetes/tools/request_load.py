"""Requests that a Pod's application makes again and again until told to stop, and the failed ones."""

import json
from dataclasses import dataclass
from typing import Final

from tests.kubernetes.tools.containers import PYTHON
from tests.kubernetes.tools.kubectl import SECONDS, Kubectl
from tests.tools.deadline import wait_until

_STOP: Final = "/tmp/stop-requests"
_RESULT: Final = "/tmp/requests"
_CODE: Final = f"""
import json, os, sys, time, urllib.request

answered, failed = 0, []
while not os.path.exists("{_STOP}"):
    try:
        urllib.request.urlopen(sys.argv[1], timeout=10).read()
        answered += 1
    except Exception as error:
        failed.append(repr(error))
    with open("{_RESULT}.new", "w") as file:
        json.dump([answered, failed], file)
    os.replace("{_RESULT}.new", "{_RESULT}")
    time.sleep(0.05)
"""


@dataclass(frozen=True)
class RequestLoad:
    """Requests of the application in a Pod to a URL."""

    kubectl: Kubectl
    pod: str
    url: str

    def start(self) -> None:
        """Start the requests, and wait for the first answer."""
        script = f'rm -f {_STOP} {_RESULT}; exec "$0" -c "$1" "$2" >/dev/null 2>&1 &'
        self._exec("sh", "-c", script, PYTHON, _CODE, self.url)
        self.until_more()

    def until_more(self, number: int = 20) -> None:
        """Wait until a number of further requests have been answered; none may fail."""
        before = self.answered()
        wait_until(lambda: self.answered() >= before + number, SECONDS)

    def answered(self) -> int:
        """Return the number of answers; none of the requests may have failed."""
        said = self.kubectl.run("exec", self.pod, "-c", "app", "--", "cat", _RESULT)
        if said.status:
            return 0  # before the first answer
        answered, failed = json.loads(said.out)
        assert failed == [], f"{len(failed)} of {answered + len(failed)} requests failed"
        return int(answered)

    def stop(self) -> int:
        """End the requests, and return the number of answers."""
        self._exec("touch", _STOP)
        return self.answered()

    def _exec(self, *command: str) -> None:
        self.kubectl("exec", self.pod, "-c", "app", "--", *command)
