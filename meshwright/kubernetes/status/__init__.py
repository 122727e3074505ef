"""What became of each object of a cluster, told where its owner looks: in its status, or in Events about it.

    statements     what there is to be said of an object, in Kubernetes' words
    conditions     the conditions of an object that has a status, and the status of OSM's own kinds
    events         the Events about one that has none: which begin, which go on, which end
    cluster        the cluster whose objects are reported on, and how it serves their kinds
    object_status  what is known of all of them now, and of which that is other
    rollouts       which proxies have applied the last change of an object
    reporter       follows delivery, and decides what is due
    writer         writes it, by the API
    attempts       bounds how much is written, counts it, and says which writes fail

It waits for the API server and nobody waits for it: what is delivered never depends on what is reported.
"""
