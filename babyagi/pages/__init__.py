"""Pages for a browser: nouns in, HTML out. A page is one file that asks nobody for anything."""
