"""Report the proxy's ejected endpoints, then end: `python -m meshwright.agent.peers.program`.

The agent writes its request to standard input.
"""

import pickle
import sys

from certs.errors import CertificateError
from meshwright.agent.credentials import CredentialsError
from meshwright.agent.enrolment import client as asking
from meshwright.agent.enrolment.client import EnrolmentUnanswered
from meshwright.agent.enrolment.pinning import ServerDistrusted, require_believed
from meshwright.agent.enrolment.program import trusted
from meshwright.agent.enrolment.settings import EnrolmentFailure
from meshwright.agent.peers.reporting import Answer, ReportAccepted, ReportTask


def answer(telling: ReportTask) -> Answer:
    """Send a report of ejected endpoints, and return the result; every failure is returned as a sentence."""
    try:
        roots, domain = trusted(telling.directory, telling.trust_domain)
        name = require_believed(telling.at, roots, domain, telling.directory)
        return ReportAccepted(asking.eject(telling.at, name, roots, telling.directory, telling.ejected))
    except (ServerDistrusted, EnrolmentUnanswered) as error:
        return error.failed
    except (CredentialsError, CertificateError, OSError) as error:
        return EnrolmentFailure(" ".join(str(error).split()))


if __name__ == "__main__":
    asked = pickle.load(sys.stdin.buffer)  # noqa: S301 - the agent that started this wrote it
    pickle.dump(answer(asked), sys.stdout.buffer)
