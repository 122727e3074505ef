"""`python -m agent.reader`: judges a proxy's files for an agent, which asks on standard input, and ends.

What reads certificates is as large as a fifth of the agent, and needed when they change: see `agent.reading`.
"""

import pickle
import sys

from agent.certificates import judged
from agent.credentials import CredentialsError, Files
from agent.reading import Answer, Question
from certs.material import PrivateKey


def answer(question: Question) -> Answer:
    """Return what the files show, or the sentence that says why they cannot be used."""
    key = PrivateKey(question.key)
    files = Files(question.directory, question.chain, key, question.authority, question.trust_domain)
    try:
        return judged(files)
    except CredentialsError as error:
        return str(error)


if __name__ == "__main__":
    asked = pickle.load(sys.stdin.buffer)  # noqa: S301 - the agent that started this wrote it
    pickle.dump(answer(asked), sys.stdout.buffer)
