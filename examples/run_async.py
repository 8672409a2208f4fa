"""Run two objectives one after the other in code that is async itself: `python
examples/run_async.py FOLDER`."""

import asyncio
import sys

import babyagi


async def main(folder: str) -> None:
    for question in ("What is promised about a restart?", "What is promised about money?"):
        outcome = await babyagi.run_async(
            question,
            first_task="List the documents of the folder",
            files=folder,
            model="rehearsal",
        )
        print(outcome.report)


asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "docs"))
