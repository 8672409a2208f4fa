"""`python -m babyagi` is `babyagi`."""

from babyagi.cli import main

main()
