"""Fault campaigns: what holds while processes, stores, servers, networks and replies fail. Each is
run at length as `python -m tests.faults.NAME` from the repository, and shortly by its test here."""
