"""An MCP server with two tools, over standard input and output."""

import json
import sys

ORDER = {"type": "object", "properties": {"order": {"type": "string"}}, "required": ["order"]}
TOOLS = [
    {"name": "find_order", "description": "Finds an order.", "inputSchema": ORDER},
    {"name": "cancel_order", "description": "Cancels an order.", "inputSchema": ORDER},
]


def answer(method, params):
    if method == "initialize":
        info = {"name": "orders", "version": "1.0.0"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": info}
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call":
        outcome = {"find_order": "is open", "cancel_order": "is cancelled"}[params["name"]]
        return {"content": [{"type": "text", "text": f"order {params['arguments']['order']} {outcome}"}]}


for line in sys.stdin:
    request = json.loads(line)
    if "id" in request:
        result = answer(request["method"], request.get("params"))
        outcome = {"result": result} if result else {"error": {"code": -32601, "message": "unknown method"}}
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], **outcome}), flush=True)
