"""One run of three tool rounds in LangGraph, with its SQLite saver: what the bench `log` measures of Loomline. With the URL of a server, also with
its PostgreSQL saver: what the bench `nodes` measures.

The model is a function without a delay. The tool is pure and gives 1 KB. Each run has a thread of its own. The saver has its defaults: a checkpoint
after each step of the graph, in SQLite with a write-ahead log.

Usage: three_rounds.py [RUNS [URL]]
"""

import resource
import sqlite3
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, MessagesState, StateGraph

RESULT = "0123456789abcdef" * 64
ANSWER = "word " * 53
ROUNDS = 3


def model(state: MessagesState) -> dict:
    n = sum(isinstance(message, ToolMessage) for message in state["messages"])
    if n == ROUNDS:
        return {"messages": [AIMessage(ANSWER)]}
    call = {"name": "lookup", "args": {"key": "a"}, "id": f"call_{n}_0123456789abcdef"}
    return {"messages": [AIMessage("", tool_calls=[call])]}


def tools(state: MessagesState) -> dict:
    calls = state["messages"][-1].tool_calls
    return {"messages": [ToolMessage(RESULT, tool_call_id=call["id"]) for call in calls]}


def graph(saver):
    builder = StateGraph(MessagesState)
    builder.add_node("model", model)
    builder.add_node("tools", tools)
    builder.add_edge(START, "model")
    builder.add_conditional_edges("model", lambda state: "tools" if state["messages"][-1].tool_calls else END, ["tools", END])
    builder.add_edge("tools", "model")
    return builder.compile(checkpointer=saver)


def processor_time() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def measure(name: str, saver, n_runs: int) -> None:
    app = graph(saver)

    def run(n: int) -> None:
        ended = app.invoke({"messages": [HumanMessage("say 50 words")]}, {"configurable": {"thread_id": f"{name}-{n}"}})
        assert len(ended["messages"]) == 2 * ROUNDS + 2

    for n in range(10):
        run(-n - 1)
    cpu, begun = processor_time(), time.perf_counter()
    for n in range(n_runs):
        run(n)
    cpu, seconds = processor_time() - cpu, time.perf_counter() - begun
    print(f"  {name}: {n_runs / seconds:.0f} runs/s, CPU {cpu / n_runs * 1e3:.2f} ms a run")


def server_time(connection) -> float:
    """The processor time of the server's processes, in seconds."""
    ticks = 0
    for (pid,) in connection.execute("SELECT pid FROM pg_stat_activity"):
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / 100


def measure_postgres(url: str, n_runs: int) -> None:
    import psycopg
    from langgraph.checkpoint.postgres import PostgresSaver

    print(f"PostgreSQL saver {version('langgraph-checkpoint-postgres')}")
    with psycopg.connect(url, autocommit=True) as observer:
        observer.execute("DROP SCHEMA IF EXISTS langgraph CASCADE")
        observer.execute("CREATE SCHEMA langgraph")
        sign = "&" if "?" in url else "?"
        with PostgresSaver.from_conn_string(f"{url}{sign}options=-csearch_path%3Dlanggraph") as saver:
            saver.setup()
            before = server_time(observer)
            measure("PostgreSQL saver", saver, n_runs)
            spent = server_time(observer) - before
            print(f"  CPU {spent / (n_runs + 10) * 1e3:.2f} ms a run at the server")


def main() -> None:
    n_runs = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    print(f"LangGraph {version('langgraph')}, SQLite saver {version('langgraph-checkpoint-sqlite')}, Python {sys.version.split()[0]}, three rounds")
    measure("in memory", InMemorySaver(), n_runs)
    with tempfile.TemporaryDirectory(dir=".") as directory:
        file = Path(directory) / "langgraph.db"
        with SqliteSaver.from_conn_string(str(file)) as saver:
            measure("SQLite saver", saver, n_runs)
        written = sqlite3.connect(file)
        written.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        written.close()
        print(f"  {file.stat().st_size / (n_runs + 10):.0f} bytes a run")
    if len(sys.argv) > 2:
        measure_postgres(sys.argv[2], n_runs)


main()
