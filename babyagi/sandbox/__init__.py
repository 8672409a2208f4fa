"""Running Python code that nobody trusts, in a process that can do nothing but compute."""
