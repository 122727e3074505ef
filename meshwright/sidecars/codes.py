"""Stable codes of problems between the mesh's objects and the installed sidecar drivers."""

from meshwright.mesh.problems.codes import ProblemCode


class Code(ProblemCode):
    """The code of a problem, with one line of explanation in `doc`. Codes MW30xx are about drivers."""

    UNKNOWN_DRIVER = "MW3001", "A sidecar driver is named that is not installed; its proxies get nothing new."
    NOT_STARTED = "MW3002", "A workload's sidecar driver is installed, and its control plane was not started."
    INCAPABLE = (
        "MW3003",
        "A policy needs what the workload's sidecar driver cannot do; that part is left out.",
    )
    DRIVER_TWICE = "MW3004", "MeshConfig has two entries for one sidecar driver; its proxies get nothing new."
    NO_MTLS = "MW3005", "A sidecar driver's entry asks for no mTLS, which there is not; its proxies have it."
