"""Stable codes of all problems in manifests."""

from meshwright.mesh.problems.codes import ProblemCode


class Code(ProblemCode):
    """A problem's stable code, with its meaning in one line (`doc`).

    Codes MW10xx come from reading one manifest, and MW11xx from the source of the manifests. A code is never
    used again with another meaning.
    """

    NOT_A_MAPPING = "MW1001", "The document is not a mapping, so the document is not a manifest."
    NO_KIND = "MW1002", "The field apiVersion or kind is missing, or is not text."
    UNKNOWN_KIND = "MW1003", "The API group does not have this kind, for example Deployment in v1."
    UNKNOWN_VERSION = "MW1004", "Meshwright reads this kind, but not in this apiVersion."
    DRAFT_VERSION = (
        "MW1005",
        "The apiVersion is a draft that was never released; use one of the released versions.",
    )
    BAD_NAME = "MW1006", "The field metadata.name or metadata.namespace is missing, or not a Kubernetes name."
    WRONG_TYPE = (
        "MW1010",
        "A field has a value of the wrong type, for example a number where text is expected.",
    )
    MISSING = "MW1011", "A required field is missing."
    UNKNOWN_FIELD = (
        "MW1012",
        "A field is unknown. The object is refused, because a misspelt field could allow or deny too much.",
    )
    WRONG_VALUE = "MW1013", "The value of a field has the right type, but is not allowed."
    BAD_REGEX = "MW1014", "A regular expression is not valid in RE2, is too large, or is empty."
    DUPLICATE = "MW1015", "Two entries of a list that must be different are the same."
    NAMESPACE = (
        "MW1016",
        "A reference names another namespace, but only the namespace of the object is allowed.",
    )
    EMPTY = "MW1017", "A list is empty, so the object is not in force."
    LISTENER_CONFLICT = "MW1018", "Two listeners of one workload have the same address and port."
    UNKNOWN_PROTOCOL = "MW1019", "The value of appProtocol is unknown; the port is treated as plain TCP."
    NOT_USED = "MW1020", "The object is valid, but the mesh does not use it."
    FIELDS_NOT_USED = "MW1021", "The object has known fields that are ignored."
    NO_ADDRESS = "MW1022", "The Pod gets requests only after it has an IP address."
    NOT_TCP = "MW1023", "A port has another protocol than TCP; sidecars carry only TCP."
    UDP_ROUTE = (
        "MW1024",
        "UDPRoute is refused, because sidecars do not carry UDP and UDP lacks mTLS.",
    )
    UNKNOWN_OWN_NAME = (
        "MW1025",
        "An annotation or label of Meshwright or Open Service Mesh is unknown, or not read on this kind.",
    )
    EMPTY_PATH = "MW1026", "The pathRegex of a match is empty, so the match accepts any path."
    UNKNOWN_METADATA = "MW1027", "A field of metadata is unknown in Kubernetes and is ignored."
    LIKE_A_FIELD = (
        "MW1028",
        "The mesh does not read this field, but it looks like a misspelt field that the mesh reads.",
    )
    UNKNOWN_OWN_VALUE = (
        "MW1029",
        "The value of an annotation or label is not allowed, so the value is ignored.",
    )
    NOT_ENFORCED = (
        "MW1030",
        "The object or field is policy of Open Service Mesh that Meshwright does not enforce.",
    )
    OTHER_KIND = "MW1031", "Meshwright does not use objects of this kind; there is one line for each kind."
    PRUNED = "MW1032", "A MeshConfig has unknown fields; they are ignored."
    OTHER_VERSION = (
        "MW1033",
        "The cluster returns the object in one version, but with the fields of another version.",
    )
    FILTER_NOT_SUPPORTED = (
        "MW1034",
        "Meshwright does not support a filter of a Gateway API route; its requests get an error.",
    )

    BAD_SYNTAX = "MW1101", "The document is not valid YAML or JSON."
    DUPLICATE_KEY = "MW1102", "A mapping has the same key twice, so the intended value is unknown."
    TOO_LARGE = (
        "MW1103",
        "The file or document is too large, too deeply nested, or has too many YAML aliases.",
    )
    UNREADABLE = "MW1104", "The file cannot be read; the objects read from it before stay in force."
    NOT_TEXT = "MW1105", "The file is not UTF-8 text."
    DUPLICATE_OBJECT = (
        "MW1106",
        "Two documents define the same object; the first one is in force. Remove one of the two.",
    )
    HELD = (
        "MW1107",
        "A document cannot be read; the last good form of its object stays in force.",
    )
    DISPUTED = (
        "MW1108",
        "Two sources have different objects of the same name; the object of the first source is in force.",
    )
    DIRECTORY_UNREADABLE = (
        "MW1109",
        "The directory or a folder in it cannot be listed; the objects read from it before stay in force.",
    )
    EMPTY_HELD = (
        "MW1110",
        "A source is suddenly empty; its last objects stay in force for empty_answer_hold_seconds.",
    )
    UNRESOLVED = (
        "MW1111",
        "A DNS name cannot be resolved; the last good answer, if there is one, stays in force.",
    )
    PROVIDER_FAILS = (
        "MW1112",
        "A provider does not return manifests; its last good answer stays in force.",
    )
    CLUSTER_UNREADABLE = (
        "MW1113",
        "Objects of a cluster cannot be read; the objects read before stay in force.",
    )
    ROOT_ELSEWHERE = (
        "MW1114",
        "A MeshRootCertificate outside the control plane's namespace is not in force.",
    )
    WRONG_KEY = (
        "MW1115",
        "A value in etcd is not the one manifest of the object that its key names.",
    )
    ETCD_UNREADABLE = (
        "MW1116",
        "The objects in etcd cannot be followed; the objects read before stay in force.",
    )
