"""What this program costs and reaches, measured: tokens, time, memory. Each is run as `python -m
benchmarks.NAME` from the repository."""
