"""Runs untrusted Python code in a process that can only compute."""
