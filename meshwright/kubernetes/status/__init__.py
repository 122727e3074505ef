"""Reporting to Kubernetes: the result of each object, in its status or in Events about the object.

    statements     reason and message of a condition or an Event, from the problems of an object
    conditions     conditions of objects that have a status, and the status of the kinds of OSM
    events         Events about objects without a status: which begin, continue and end
    cluster        the cluster of the reported objects, and the versions in which it serves their kinds
    object_status  current problems of each object, and the objects whose problems changed
    rollouts       proxies that applied the last change of an object
    reporter       follows delivery and collects the changes to report
    writer         writes status and Events through the Kubernetes API
    attempts       limits and counts the writes, and logs the failed ones

Reporting waits for the API server, but delivery never waits for reporting: proxies get their configuration
even if the API server does not answer.
"""
