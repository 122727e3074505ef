"""Envoy's life beside its workload: when it is started, replaced, ended, given up; and its process."""
