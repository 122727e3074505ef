"""What follows from how all that a request goes by stands, and from one such request: step by step. Pure."""
