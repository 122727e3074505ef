"""The stable codes of everything that can be wrong with what users write: readers and sources."""

from meshwright.mesh.problems.codes import ProblemCode


class Code(ProblemCode):
    """A problem's stable code and what it means in one line (`doc`).

    MW10xx come from reading one manifest, MW11xx from the source that holds the manifests. A code is
    never used again for something else.
    """

    NOT_A_MAPPING = "MW1001", "The document is not a mapping, so it cannot be a manifest."
    NO_KIND = "MW1002", "apiVersion or kind is missing or is not text."
    UNKNOWN_KIND = "MW1003", "The kind is none that its API group has."
    UNKNOWN_VERSION = "MW1004", "The kind is read, but not in this apiVersion."
    DRAFT_VERSION = "MW1005", "The apiVersion is a draft that was never released; it is refused by name."
    BAD_NAME = "MW1006", "metadata.name or metadata.namespace is missing or no Kubernetes name."
    WRONG_TYPE = "MW1010", "A field holds a value of another type."
    MISSING = "MW1011", "A required field is missing."
    UNKNOWN_FIELD = "MW1012", "A field is unknown; a typo must not open or close a door in silence."
    WRONG_VALUE = "MW1013", "A field's value is of the right type, but not allowed."
    BAD_REGEX = "MW1014", "A regular expression is not one of RE2, is too large, or is empty."
    DUPLICATE = "MW1015", "Two entries of one list that must differ are the same."
    NAMESPACE = "MW1016", "A reference leads to a namespace that the object may not speak for."
    EMPTY = "MW1017", "A list that gives the object its effect is empty."
    LISTENER_CONFLICT = "MW1018", "Two listeners of one workload would share an address and port."
    UNKNOWN_PROTOCOL = "MW1019", "appProtocol is not known; the port is treated as plain TCP."
    NOT_USED = "MW1020", "The object is understood and plays no part in the mesh."
    FIELDS_NOT_USED = "MW1021", "Known fields of the object are read and have no effect yet."
    NO_ADDRESS = "MW1022", "The Pod has no IP yet; it is not used until it has one."
    NOT_TCP = "MW1023", "A port's transport is not TCP; sidecars carry TCP only."
    UDP_ROUTE = "MW1024", "UDPRoute is refused: a sidecar sees no UDP, and there is no mTLS for it."
    UNKNOWN_OWN_NAME = "MW1025", "An annotation or label of ours is not known, or says nothing on this kind."
    EMPTY_PATH = "MW1026", "A match's pathRegex is empty, which is any path."
    UNKNOWN_METADATA = "MW1027", "A field of metadata is none that objects have; it has no effect."
    LIKE_A_FIELD = "MW1028", "A field is not read, and looks like one that is; it has no effect."
    UNKNOWN_OWN_VALUE = (
        "MW1029",
        "An annotation or label has a value that is none of its words; it has no effect.",
    )
    NOT_ENFORCED = "MW1030", "The object or field is policy of OSM's that is not enforced here."
    OTHER_KIND = "MW1031", "Objects of a kind that is no part of a mesh are not read; one line for each kind."
    PRUNED = "MW1032", "A MeshConfig has fields that are none of a MeshConfig's; they have no effect."
    OTHER_VERSION = "MW1033", "A cluster shows the object in one version, and it has the fields of another."

    BAD_SYNTAX = "MW1101", "The document is not valid YAML or JSON."
    DUPLICATE_KEY = "MW1102", "A mapping has the same key twice, so what is meant cannot be known."
    TOO_LARGE = "MW1103", "The file or document is larger, deeper or more aliased than is sane."
    UNREADABLE = "MW1104", "The file cannot be read; its objects stay as they were."
    NOT_TEXT = "MW1105", "The file is not UTF-8 text."
    DUPLICATE_OBJECT = "MW1106", "Two documents define the same object; the first one is in force."
    HELD = (
        "MW1107",
        "A document cannot be read; the object that it is or may be stays in force in its last good form.",
    )
    DISPUTED = "MW1108", "Two sources know the same object differently; the earlier one's is in force."
    DIRECTORY_UNREADABLE = (
        "MW1109",
        "The directory, or part of it, cannot be listed; what it held stays in force.",
    )
    EMPTY_HELD = (
        "MW1110",
        "A source says that nothing is left of what it had; what it said last is kept a while.",
    )
    UNRESOLVED = (
        "MW1111",
        "A DNS name cannot be resolved; its last good answer, if there is one, stays in force.",
    )
    PROVIDER_FAILS = (
        "MW1112",
        "A provider does not answer, or not with manifests; its last answer stays in force.",
    )
    CLUSTER_UNREADABLE = (
        "MW1113",
        "Objects of a cluster cannot be read; what was last known of them stays in force.",
    )
    ROOT_ELSEWHERE = (
        "MW1114",
        "A MeshRootCertificate is not in the control plane's namespace; it is not in force.",
    )
