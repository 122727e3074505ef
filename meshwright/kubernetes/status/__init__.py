"""What became of each object of a cluster, told where its owner looks: in its status, or in Events about it.

    statements  what there is to be said of an object, in Kubernetes' words
    conditions  the conditions of an object that has a status
    words       the status of OSM's own kinds, which has no conditions
    events      the Events about one that has none: which begin, which go on, which end
    cluster     the cluster whose objects are reported on
    standing    what is known of all of them now, and of which that is other
    patience    which problems are held back for some seconds, because they may end by themselves
    rollouts    which proxies have applied the last change of an object
    reporter    follows delivery, and decides what is due
    writer      writes it, by the API

It waits for the API server and nobody waits for it: what is delivered never depends on what is reported.
"""
