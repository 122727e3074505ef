"""What our server is measured beside: the same resources under the same load."""
