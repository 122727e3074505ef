"""Reporting to Kubernetes: the result of each object, in the object's status or in Events.

    statements     reason and message of a condition or an Event, from the problems of an object
    conditions     conditions of objects with a status, and the status of the kinds of OSM
    parents        the conditions of Gateway API routes, a list with one entry for each parent
    meshes         the status of XMesh objects, which name the supported features of the Gateway API
    events         Events about objects without a status: which begin, continue and end
    cluster        the cluster of the reported objects, and the served versions of their kinds
    known_statuses statuses as last read or written, by UID
    object_status  current problems of each object, and the objects whose problems changed
    rollouts       proxies that applied the last change of an object
    reporter       follows delivery and collects the changes to report
    writer         writes status and Events through the Kubernetes API
    attempts       limits and counts the writes, and logs the failed ones

For example, after a change of a Workload the condition `Programmed` gives the number of proxies that have
applied the change, and an Event warns about a TrafficTarget with an unknown destination.

Reporting waits for the API server, but delivery never waits for reporting: proxies get their configuration
even if the API server does not answer. Read next: `reporter`, then `writer`.
"""
