"""Reflector: all objects of one kind, listed once and then kept current by a watch.

`reflector` drives the requests, `object_cache` holds the objects and computes differences (pure), `pacing`
has the times, and `statistics` the figures for metrics and pages. The package never knows the meaning of an
object: a `project` function reduces each object to the needed part.
"""
