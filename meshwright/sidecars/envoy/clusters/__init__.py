"""Clusters (CDS) and endpoints (EDS), with health checks, circuit breakers and outlier detection.

It never decides which endpoints there are: the policy has them.
"""
