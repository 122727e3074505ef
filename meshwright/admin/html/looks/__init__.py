"""Layout of each debug page, and an introductory sentence; a layout reads only the page's JSON."""
