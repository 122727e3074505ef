"""The stable codes of what is wrong between the mesh's objects and the sidecar drivers there are."""

from meshwright.mesh.problems.codes import ProblemCode


class Code(ProblemCode):
    """A problem's stable code and, in `doc`, what it means in one line. MW30xx come from the drivers."""

    UNKNOWN_DRIVER = "MW3001", "A sidecar driver is named that is not installed; its proxies get nothing new."
    NOT_STARTED = "MW3002", "A workload's sidecar driver is installed, and its control plane was not started."
    INCAPABLE = (
        "MW3003",
        "A policy needs what the workload's sidecar driver cannot do; that part is left out.",
    )
    DRIVER_TWICE = "MW3004", "MeshConfig has two entries for one sidecar driver; its proxies get nothing new."
    NO_MTLS = "MW3005", "A sidecar driver's entry asks for no mTLS, which there is not; its proxies have it."
