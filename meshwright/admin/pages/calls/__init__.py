"""Pages about one request: the reasons for its answer, and the parts on its path. No request is sent."""
