"""One real request from beside a workload, as its application would make it, and what was seen of it."""
