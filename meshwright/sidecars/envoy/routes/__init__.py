"""Route configurations (RDS), the virtual clusters that count requests, and the renewal of routes.

The policy has the routes in their order of precedence; this package never changes the order.
"""
