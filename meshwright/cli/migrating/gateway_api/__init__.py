"""`meshwright migrate smi`: routes of the Gateway API that are equivalent to a mesh's TrafficSplits.

    ordered_matches  matches in an order that the Gateway API keeps
    routes           routes of each Service, from its route table
    manifests        routes as manifests
    replaced_splits  manifests of the whole mesh that the Gateway API accepts, and findings for each Service

All modules are functions of values. The package never changes a TrafficTarget, because access stays SMI's.
"""
