"""Clusters (CDS) and endpoints (EDS), with health checks, circuit breakers and outlier detection.

`cluster` combines the other modules. The package never decides on endpoints: the policy has them.
"""
