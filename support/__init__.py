"""What tests and benchmarks share: a local model server, scripted and simulated models, servers of
stores and indexes, worlds on clocks that jump, and processes of this program."""
