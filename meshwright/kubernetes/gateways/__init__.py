"""Gateways on Kubernetes: the objects that run the proxies of a Gateway.

- `infrastructure`: the ServiceAccount, Deployment, Service and PodDisruptionBudget, as documents.
- `addresses`: the requested address of the Service.
- `parameters`: replicas, resources and the type of the Service, from `infrastructure.parametersRef`.

The Gateway owns these objects, so Kubernetes removes them with it. This package never decides about listeners
or routes.
"""
