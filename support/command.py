"""The command line with other defaults of settings that have no variable: `SUPPORT_DEFAULTS` in the
environment holds NAME=VALUE, separated by blanks."""

import os

from babyagi.cli import main
from babyagi.settings.fields import Settings, declared_fields


def run() -> None:
    """Be the command of `sys.argv`, with these defaults."""
    defaults = Settings.__init__.__kwdefaults__ or {}  # a dataclass takes its defaults from here
    declared = declared_fields()
    for given in os.environ.pop("SUPPORT_DEFAULTS", "").split():
        name, _, text = given.partition("=")
        defaults[name] = declared[name].parse(text)
    main()


if __name__ == "__main__":
    run()
