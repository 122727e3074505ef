"""Clusters (CDS) and endpoints (EDS), with health checks, circuit breakers and outlier detection.

`cluster` combines the other modules. It never decides which endpoints there are: the policy has them.
"""
