"""What is done with HTTP on its way through a proxy: one module a feature, all in the order of `order`."""
