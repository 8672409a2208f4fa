"""`python -m babyagi` runs the command `babyagi`."""

import os
import sys

if sys.path[0] in ("", os.getcwd()):  # noqa: PTH109 (no import yet: `-m` put the working folder here, and what lies there is data)
    del sys.path[0]

from babyagi.cli import main

main()
