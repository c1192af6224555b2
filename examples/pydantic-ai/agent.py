"""An agent of Pydantic AI in your own process. Its conversation is a thread of the server."""

import os
import sys

from loomline import Loomline
from loomline.adapters.pydantic_ai import History
from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel

# TestModel calls each tool once and needs no key. MODEL=openai:gpt-5-mini selects a real model.
agent = Agent(os.environ.get("MODEL") or TestModel(), instructions="You help with orders.")


@agent.tool_plain
def order_status(order: str) -> str:
    """The status of an order."""
    return f"order {order} is on its way"


key, prompt = sys.argv[1:]
with Loomline() as client:
    history = History(client.thread(key), agent="orders")
    messages = history.load()
    result = agent.run_sync(prompt, message_history=messages)
    history.append(result)
    print(f"{len(messages)} messages before, {len(history.load())} now: {result.output}")
