"""Settings: the only code that reads the environment and configuration files. Each setting is
declared in `fields.py`."""
