"""What the fields of our own policies mean."""

from typing import Final

from specs.reference.meaning import DURATION, NAME, ROUTE_GROUPS, SERVICE, Meaning, Meanings

ROUTE_POLICY: Final[Meanings] = {
    "metadata.creationTimestamp": Meaning("Of several of one service the oldest counts."),
    "spec": Meaning("What becomes of requests to which service."),
    "spec.service": Meaning("The service that is called, of the object's namespace.", form=SERVICE),
    "spec.rules": Meaning("The first that fits a request decides; none leaves it as it is."),
    "spec.rules[].matches": Meaning("Which requests the rule is for.", "all"),
    "spec.rules[].matches[].apiGroup": Meaning("The kind's.", form=ROUTE_GROUPS),
    "spec.rules[].matches[].kind": Meaning("Of what is referred to there is one kind."),
    "spec.rules[].matches[].name": Meaning("Its name, in the object's namespace.", form=NAME),
    "spec.rules[].matches[].matches": Meaning("Which of its matches, by name.", "all of them"),
    "spec.rules[].timeout": Meaning("How long things may take."),
    "spec.rules[].timeout.request": Meaning(
        "From the whole request to the end of the answer, all its tries included: 1ms to 1h; then it is 504.",
        "any time",
        DURATION,
    ),
}
