"""Status of a cluster's objects: conditions for kinds that have a status, and Events for other kinds.

    statements     reasons and messages in Kubernetes' terms
    conditions/    the status of an object: conditions, and the words of Open Service Mesh's kinds
    event          Events about an object without a status: which begin, continue and end
    events/        Events, written
    cluster        the cluster whose objects are reported on, and the kinds that it serves
    object_status  the current status of every object, and which objects differ from the last written one
    rollouts       the proxies that have applied the last change of an object
    reporter       follows delivery, and decides what is due
    writer         writes by the API, while this server is the leader
    attempts       bounds and counts the writes, and logs which ones fail

It waits for the API server. Delivery never waits for it.
"""
