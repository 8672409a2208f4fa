"""llama.cpp's own HTTP server in a process of its own: prints its address, and serves until its
standard input is closed. `python -m tests.support.llama_server MODEL`."""

from __future__ import annotations

import sys


def main() -> None:
    import xllamacpp

    given = xllamacpp.CommonParams()
    given.model.path = sys.argv[1]
    for name, value in {"ui": False, "verbosity": -1, "n_ctx": 4096, "n_parallel": 1}.items():
        setattr(given, name, value)
    given.cpuparams.n_threads = given.cpuparams_batch.n_threads = 1
    server = xllamacpp.Server(given)
    print(server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
