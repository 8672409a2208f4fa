"""Pages for a browser: takes nouns and returns HTML. A page is one file that loads nothing."""
