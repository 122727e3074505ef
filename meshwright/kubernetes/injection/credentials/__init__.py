"""The ConfigMap and the Secret by which a Pod trusts and joins the control plane.

It never decides which Pods get a sidecar.
"""
