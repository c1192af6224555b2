-- Instants are nanoseconds since 1970. JSON is text, as it came.

-- A thread (EK 4.1), where its log ends and who may write it.
CREATE TABLE thread_threads (
    no          INTEGER PRIMARY KEY,
    id          TEXT NOT NULL UNIQUE,
    tenant      TEXT NOT NULL,
    key         TEXT,
    status      TEXT NOT NULL CHECK (status IN ('open', 'streaming', 'closed', 'failed')),
    title       TEXT,
    metadata    TEXT,
    fork_no     INTEGER REFERENCES thread_threads (no),
    fork_seq    INTEGER,
    created_at  INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL,
    head_seq    INTEGER NOT NULL,
    epoch       INTEGER NOT NULL DEFAULT 0,
    bytes       INTEGER NOT NULL,
    UNIQUE (tenant, key),
    CHECK ((fork_no IS NULL) = (fork_seq IS NULL))
) STRICT;
CREATE INDEX thread_recent ON thread_threads (tenant, updated_at, id);
CREATE INDEX thread_forks ON thread_threads (fork_no);

-- The log: everything below can be written anew from it.
CREATE TABLE thread_events (
    id          INTEGER PRIMARY KEY,
    thread_no   INTEGER NOT NULL REFERENCES thread_threads (no),
    seq         INTEGER NOT NULL CHECK (seq > 0),
    at          INTEGER NOT NULL,
    kind        INTEGER NOT NULL,
    payload     TEXT NOT NULL,
    UNIQUE (thread_no, seq)
) STRICT;
-- 14 is a chunk that only shows.
CREATE INDEX thread_facts ON thread_events (thread_no, seq) WHERE kind <> 14;

-- Requests that were answered.
CREATE TABLE thread_tokens (
    thread_no   INTEGER NOT NULL REFERENCES thread_threads (no),
    token       TEXT NOT NULL,
    answer      TEXT NOT NULL,
    seq         INTEGER NOT NULL,
    PRIMARY KEY (thread_no, token)
) STRICT, WITHOUT ROWID;

-- Link 1: a context belongs to exactly one thread (EK 4.2).
CREATE TABLE thread_contexts (
    id          TEXT PRIMARY KEY NOT NULL,
    thread_no   INTEGER NOT NULL UNIQUE REFERENCES thread_threads (no),
    key         TEXT,
    status      TEXT NOT NULL CHECK (status IN ('open', 'streaming', 'closed')),
    content     TEXT,
    created_at  INTEGER NOT NULL,
    updated_at  INTEGER,
    UNIQUE (thread_no, id)
) STRICT;

-- Link 2: an item belongs to a thread and its context (EK 4.3).
CREATE TABLE thread_items (
    thread_no   INTEGER NOT NULL REFERENCES thread_threads (no),
    id          TEXT NOT NULL,
    context_id  TEXT NOT NULL,
    seq         INTEGER NOT NULL,
    type        TEXT NOT NULL CHECK (type IN ('message', 'action_execute', 'action_result', 'item_reference')),
    role        TEXT CHECK (role IN ('user', 'assistant', 'system', 'developer')),
    status      TEXT NOT NULL CHECK (status IN ('stored', 'pending', 'completed')),
    channel     TEXT,
    content     TEXT,
    execution_id TEXT,
    run         TEXT,
    waiting     INTEGER NOT NULL CHECK (waiting IN (0, 1)),
    metadata    TEXT,
    created_at  INTEGER NOT NULL,
    updated_at  INTEGER,
    PRIMARY KEY (thread_no, id),
    FOREIGN KEY (thread_no, context_id) REFERENCES thread_contexts (thread_no, id)
) STRICT;
CREATE UNIQUE INDEX thread_items_order ON thread_items (thread_no, seq);
CREATE INDEX thread_items_kept ON thread_items (thread_no, seq) WHERE run IS NULL AND execution_id IS NULL;
CREATE INDEX thread_items_waiting ON thread_items (thread_no, seq) WHERE waiting = 1;

-- Link 3: an execution belongs to a thread and its context, and to the two items (EK 4.5).
CREATE TABLE thread_executions (
    thread_no   INTEGER NOT NULL REFERENCES thread_threads (no),
    id          TEXT NOT NULL,
    context_id  TEXT NOT NULL,
    seq         INTEGER NOT NULL,
    trigger_item_id  TEXT NOT NULL,
    reaction_item_id TEXT NOT NULL,
    workflow_run_id  TEXT,
    status      TEXT NOT NULL CHECK (status IN ('executing', 'completed', 'failed')),
    interruption_reason TEXT,
    interruption_detail TEXT,
    run         TEXT,
    created_at  INTEGER NOT NULL,
    updated_at  INTEGER,
    PRIMARY KEY (thread_no, id),
    FOREIGN KEY (thread_no, context_id) REFERENCES thread_contexts (thread_no, id),
    FOREIGN KEY (thread_no, trigger_item_id) REFERENCES thread_items (thread_no, id),
    FOREIGN KEY (thread_no, reaction_item_id) REFERENCES thread_items (thread_no, id)
) STRICT;
CREATE INDEX thread_executions_trigger ON thread_executions (thread_no, trigger_item_id);
-- Never two executions at once on one thread.
CREATE UNIQUE INDEX thread_executions_running ON thread_executions (thread_no) WHERE status = 'executing';

-- Link 4: a step belongs to an execution (EK 4.6).
CREATE TABLE thread_steps (
    thread_no   INTEGER NOT NULL,
    id          TEXT NOT NULL,
    execution_id TEXT NOT NULL,
    iteration   INTEGER NOT NULL,
    seq         INTEGER NOT NULL,
    status      TEXT NOT NULL CHECK (status IN ('running', 'completed', 'failed')),
    event_id    TEXT NOT NULL,
    tool_calls  TEXT,
    tool_execution_results TEXT,
    continue_loop INTEGER CHECK (continue_loop IN (0, 1)),
    error_text  TEXT,
    created_at  INTEGER NOT NULL,
    updated_at  INTEGER,
    PRIMARY KEY (thread_no, id),
    UNIQUE (thread_no, execution_id, iteration),
    FOREIGN KEY (thread_no, execution_id) REFERENCES thread_executions (thread_no, id),
    FOREIGN KEY (thread_no, event_id) REFERENCES thread_items (thread_no, id)
) STRICT;

-- Link 5: a part belongs to a step (EK 4.7).
CREATE TABLE thread_parts (
    thread_no   INTEGER NOT NULL,
    step_id     TEXT NOT NULL,
    idx         INTEGER NOT NULL CHECK (idx >= 0),
    key         TEXT NOT NULL CHECK (key = step_id || ':' || idx),
    type        TEXT,
    part        TEXT NOT NULL,
    created_at  INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL,
    PRIMARY KEY (thread_no, step_id, idx),
    FOREIGN KEY (thread_no, step_id) REFERENCES thread_steps (thread_no, id)
) STRICT;

-- Traces (EK-14): a run for each execution, spans for it, its steps and its tools.
CREATE TABLE thread_trace_runs (
    thread_no   INTEGER NOT NULL REFERENCES thread_threads (no),
    id          TEXT NOT NULL,
    name        TEXT,
    status      TEXT NOT NULL,
    n_steps     INTEGER NOT NULL DEFAULT 0,
    input_tokens  INTEGER NOT NULL DEFAULT 0,
    output_tokens INTEGER NOT NULL DEFAULT 0,
    started_at  INTEGER NOT NULL,
    ended_at    INTEGER,
    duration    INTEGER GENERATED ALWAYS AS (ended_at - started_at) VIRTUAL,
    PRIMARY KEY (thread_no, id)
) STRICT;

CREATE TABLE thread_trace_spans (
    thread_no   INTEGER NOT NULL REFERENCES thread_threads (no),
    kind        TEXT NOT NULL CHECK (kind IN ('execution', 'step', 'tool')),
    id          TEXT NOT NULL,
    run_id      TEXT NOT NULL,
    parent_id   TEXT,
    name        TEXT,
    status      TEXT NOT NULL CHECK (status IN ('running', 'ok', 'error')),
    error_text  TEXT,
    started_at  INTEGER NOT NULL,
    ended_at    INTEGER,
    duration    INTEGER GENERATED ALWAYS AS (ended_at - started_at) VIRTUAL,
    PRIMARY KEY (thread_no, kind, id)
) STRICT;
CREATE INDEX thread_trace_spans_run ON thread_trace_spans (thread_no, run_id, started_at);
CREATE INDEX thread_trace_spans_open ON thread_trace_spans (thread_no) WHERE ended_at IS NULL;

CREATE TABLE thread_trace_events (
    thread_no   INTEGER NOT NULL REFERENCES thread_threads (no),
    seq         INTEGER NOT NULL,
    run_id      TEXT,
    span_id     TEXT,
    name        TEXT NOT NULL,
    at          INTEGER NOT NULL,
    model       TEXT,
    provider    TEXT,
    input_tokens  INTEGER,
    output_tokens INTEGER,
    data        TEXT,
    PRIMARY KEY (thread_no, seq)
) STRICT;
