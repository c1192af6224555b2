"""An agent of the OpenAI Agents SDK in your own process. Its session is a thread of the server."""

import asyncio
import os
import sys

from agents import Agent, Runner, function_tool, set_tracing_disabled
from loomline import AsyncLoomline
from loomline.adapters.openai_agents import LoomlineSession


@function_tool
def book_table(guests: int) -> str:
    """Books a table in the restaurant."""
    return f"a table for {guests}"


async def main(key: str, prompt: str) -> None:
    agent = Agent(name="waiter", model=os.environ.get("MODEL", "gpt-5-mini"), tools=[book_table])
    async with AsyncLoomline() as client:
        session = LoomlineSession(key, client)
        result = await Runner.run(agent, prompt, session=session)
        print(f"{result.final_output} ({len(await session.get_items())} items)")


set_tracing_disabled(True)  # Traces would go to OpenAI.
asyncio.run(main(*sys.argv[1:]))
