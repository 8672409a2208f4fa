"""Writes the example file: `python -m support.env_example > .env.example`."""

from babyagi.settings.fields import Settings, declared_fields
from babyagi.settings.load import render_value
from babyagi.settings.values import Declared


def _explain(name: str, declared: Declared) -> str:
    """Return a setting's help, choices and default as one paragraph."""
    default = declared.default_text or render_value(getattr(Settings(), name)) or "none"
    choices = f" One of {', '.join(declared.choices)}." if declared.choices else ""
    return f"{declared.help}{choices} Default: {default}."


def render_env_example() -> str:
    """Return the text of `.env.example`. It lists the variables with an empty value, in a syntax
    that both python-dotenv and `docker run --env-file` read."""
    lines = [
        "# Copy this file to .env and fill in what you need. An empty value means the default.",
        "# Write values without quotes, and without a comment after a value.",
        (
            "# Settings that can run programs, send data, read files or spend money have no effect "
            "until you type `babyagi config trust`, and again after each change."
        ),
    ]
    for name, declared in declared_fields().items():
        if declared.section:
            lines += ["", f"# == {declared.section} =="]
        if declared.variables and declared.is_listed:
            others = ", ".join(declared.variables[1:])
            older = f" Other name: {others}." if others else ""
            lines += ["", f"# {_explain(name, declared)}{older}", f"{declared.variables[0]}="]
    mentioned = [one.variables[0] for one in declared_fields().values() if not one.is_listed]
    lines += ["", "# == Rarely set, or names of the original, of the shell and of services =="]
    lines += ["# They act, and `babyagi config` shows them:"]
    lines += [f"# {' '.join(mentioned[at : at + 5])}" for at in range(0, len(mentioned), 5)]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(render_env_example(), end="")
