"""One real request from beside a workload, made as the application would make it, with the observed outcome.

`request` makes the request, `response` checks that the connection went through the sidecar, and `outcomes`
interprets the answer.

The package never repeats a request.
"""
