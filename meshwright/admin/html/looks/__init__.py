"""Layout of each debug page, and the sentence that introduces it; a layout reads only the page's JSON."""
