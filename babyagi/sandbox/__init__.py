"""Run Python code that nobody trusts, in a process that can only compute."""
