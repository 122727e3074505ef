"""The gRPC edge: discovery over mTLS, and what clients may cost."""
