"""`meshwright migrate smi`: routes of the Gateway API that are equivalent to a mesh's TrafficSplits.

    ordered_matches  matches in an order that the Gateway API keeps
    routes           routes and findings for each Service, from its route table
    manifests        routes as manifests

All modules are functions of values. The package never changes a TrafficTarget, because access stays SMI's.
"""
