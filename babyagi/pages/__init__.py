"""Makes HTML pages for a browser. A page is one file that loads no other."""
