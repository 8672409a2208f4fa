"""An MCP server that pays and looks up, and writes each call down: `python mcp_ledger_server.py
FILE`. A payment is on the file for a moment before it is answered."""

import json
import os
import sys
import time
from pathlib import Path

TOOLS = [
    {
        "name": name,
        "description": description,
        "inputSchema": {
            "type": "object",
            "properties": {"number": {"type": "integer"}},
            "required": ["number"],
        },
    }
    for name, description in (("pay", "Pay an amount."), ("look", "Look a number up."))
]
INFO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "ledger", "version": "1"},
}


def call(params):
    name, number = params["name"], params["arguments"]["number"]
    with Path(sys.argv[1]).open("a", encoding="utf-8") as ledger:
        ledger.write(f"{name} {number}\n")
        ledger.flush()
        os.fsync(ledger.fileno())
    time.sleep(0.1)
    said = f"receipt {number}" if name == "pay" else f"entry {number} is fine"
    return {"content": [{"type": "text", "text": said}]}


ANSWERS = {
    "initialize": lambda _: INFO,
    "tools/list": lambda _: {"tools": TOOLS},
    "tools/call": call,
}
if __name__ == "__main__":
    for line in sys.stdin:
        request = json.loads(line)
        if "id" not in request:
            continue
        answer = ANSWERS.get(request["method"])
        outcome = (
            {"error": {"code": -32601, "message": "there is no such method"}}
            if answer is None
            else {"result": answer(request.get("params"))}
        )
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], **outcome}), flush=True)
