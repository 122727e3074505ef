"""Clusters (CDS) and endpoints (EDS), with health checks, circuit breakers and outlier detection.

`cluster` combines the other modules. The endpoints themselves come from the policy.
"""
