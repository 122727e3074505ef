"""One real request from beside a workload, made as its application would make it, with its observed outcome.

`request` makes it, `response` checks that the connection went through the sidecar, and `outcomes` interprets
the answer.

The package never repeats a request.
"""
