"""Layout of each debug page, and an introductory sentence; a layout never reads more than the page's JSON."""
