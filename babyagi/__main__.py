"""`python -m babyagi` runs the command `babyagi`."""

import os
import sys

try:
    here = os.getcwd()  # noqa: PTH109 (no import yet)
except OSError:  # the working folder was removed
    here = ""
if sys.path[0] in ("", here):  # `-m` put the working folder here, and what lies there is data
    del sys.path[0]

from babyagi.cli import main

main()
