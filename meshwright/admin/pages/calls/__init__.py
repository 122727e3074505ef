"""Pages about one request: reasons for its answer, and parts on its path; the request is never sent."""
