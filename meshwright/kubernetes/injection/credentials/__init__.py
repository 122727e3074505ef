"""The ConfigMap and the Secret by which a Pod trusts and joins the control plane.

This package never decides about sidecars; it follows the decision.
"""
