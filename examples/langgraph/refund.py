"""A graph with an interrupt. Its checkpoints are objects of a thread, so that any process can resume it."""

import sys

from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, interrupt
from loomline import Loomline
from loomline.adapters.langgraph import LoomlineSaver


class State(MessagesState):
    amount: int


def check(state: State) -> dict:
    words = state["messages"][-1].content.split()
    return {"amount": next(int(word) for word in words if word.isdigit())}


def decide(state: State) -> dict:
    is_approved = interrupt(f"Refund {state['amount']} euros?")
    return {"messages": [("ai", f"Refund of {state['amount']} euros: {'paid' if is_approved else 'refused'}.")]}


builder = StateGraph(State)
builder.add_node("check", check)
builder.add_node("decide", decide)
builder.add_edge(START, "check")
builder.add_edge("check", "decide")

thread, text = sys.argv[1:]
with Loomline() as client:
    graph = builder.compile(checkpointer=LoomlineSaver(client))
    config = {"configurable": {"thread_id": thread}}
    if graph.get_state(config).interrupts:
        state = graph.invoke(Command(resume=text == "yes"), config)
    else:
        state = graph.invoke({"messages": [("user", text)]}, config)
    for question in state.get("__interrupt__", []):
        print(question.value)
    print(state["messages"][-1].content)
