"""An MCP server as a file describes it: `python doors_server.py DESCRIPTION LOG`.

The description is JSON: `forms`, lists of tools, of which the first is listed `n_first` times and
then the second; `result`, what each call gives; `says`, messages before each answer to a call. The
log has a line for each request: `list`, or `call` with the tool, its arguments, and whether the
tool was then in its first form.
"""

import json
import sys
from pathlib import Path

ABOUT = json.loads(Path(sys.argv[1]).read_text())
LOG = Path(sys.argv[2])


def say(message):
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def note(*words):
    with LOG.open("a") as log:
        log.write(json.dumps(words) + "\n")


def form():
    """The tools as they are now; how often they were listed stands in the log, over all starts."""
    n_lists = LOG.read_text().count('["list"') if LOG.exists() else 0
    return ABOUT["forms"][int(n_lists > ABOUT["n_first"])]


def find(name, tools):
    return next((one for one in tools if isinstance(one, dict) and one.get("name") == name), None)


def answer(request):
    match request["method"]:
        case "initialize":
            info = {"name": "s", "version": "1"}
            can = {"tools": {"listChanged": True}}
            return {"protocolVersion": "2025-06-18", "serverInfo": info, "capabilities": can,
                    "instructions": ABOUT["instructions"]}  # fmt: skip
        case "tools/list":
            note("list")
            return {"tools": form()}
        case "tools/call":
            name = request["params"]["name"]
            is_first = find(name, form()) == find(name, ABOUT["forms"][0])
            note("call", name, request["params"].get("arguments"), is_first)
            for message in ABOUT["says"]:
                say({"jsonrpc": "2.0", **message})
            return ABOUT["result"]
        case _:
            return None


for line in sys.stdin:
    given = json.loads(line)
    if "id" in given and "method" in given:
        result = answer(given)
        unknown = {"error": {"code": -32601, "message": "there is no such method"}}
        said = {"result": result} if result is not None else unknown
        say({"jsonrpc": "2.0", "id": given["id"], **said})
