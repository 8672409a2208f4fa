"""llama.cpp's own HTTP server in a process of its own: prints its address, and serves until its
standard input is closed. `python -m benchmarks.uplift.engine MODEL SLOT_FOLDER`."""

from __future__ import annotations

import os
import sys

N_SLOTS = 4  # as many as the daemon runs tasks at once
CONTEXT_TOKENS = 8192  # of each slot
TEMPERATURE = 0.0  # so that a run can be repeated; a request that names one has its own


def main() -> None:
    import xllamacpp

    given = xllamacpp.CommonParams()
    given.model.path = sys.argv[1]
    given.cpuparams.n_threads = given.cpuparams_batch.n_threads = os.cpu_count() or 2
    for name, value in {
        "ui": False,
        "use_jinja": True,
        "verbosity": -1,
        "n_ctx": N_SLOTS * CONTEXT_TOKENS,
        "n_parallel": N_SLOTS,
        "fit_params": False,  # else the engine chooses another length for the context
        "cache_ram_mib": 0,  # what a slot holds is all that is cached
        "endpoint_slots": True,
        "slot_save_path": f"{sys.argv[2]}/",  # without one no slot can be emptied
    }.items():
        setattr(given, name, value)
    for name, value in {"temp": TEMPERATURE}.items():
        setattr(given.sampling, name, value)
    server = xllamacpp.Server(given)
    print(server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
