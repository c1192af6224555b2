-- The log is stored in blocks, one for each commit. The other tables hold places of texts in them: the number of a
-- block, an offset and a length in bytes. The program fills these tables from the events of the older log.
ALTER TABLE thread_events RENAME TO old_events;
DROP TABLE thread_waits;
DROP TABLE thread_trace_events;
DROP TABLE thread_trace_spans;
DROP TABLE thread_trace_runs;
DROP TABLE thread_parts;
DROP TABLE thread_steps;
DROP TABLE thread_executions;
DROP TABLE thread_items;
DROP TABLE thread_contexts;

-- The sum of the thread's last block, and the sums of the row: of what the thread is, and of where its log ends. All
-- sums are 16 bytes; the program calculates them. Rows that the log does not have carry sums too.
ALTER TABLE thread_threads ADD COLUMN sum BLOB;
ALTER TABLE thread_threads ADD COLUMN row_sum BLOB;
ALTER TABLE thread_threads ADD COLUMN end_sum BLOB;
ALTER TABLE thread_tokens ADD COLUMN sum BLOB;
ALTER TABLE tenant_objects ADD COLUMN sum BLOB;
ALTER TABLE agent_checkpoints RENAME TO old_checkpoints;

-- The latest state of each session of agents that run in memory (UAP 12.4). It is not in any log. The state comes last:
-- what precedes it is read without it. `state_sum` is that of the state, and `sum` that of the rest of the row.
CREATE TABLE agent_checkpoints (
    no          INTEGER PRIMARY KEY,
    tenant      TEXT NOT NULL,
    session_id  TEXT NOT NULL,
    checkpoint_id TEXT NOT NULL,
    saved_at    INTEGER NOT NULL,
    step        INTEGER NOT NULL,
    agent_id    TEXT,
    sum         BLOB NOT NULL,
    state_sum   BLOB NOT NULL,
    state       TEXT NOT NULL,
    UNIQUE (tenant, session_id)
) STRICT;

DROP INDEX thread_forks;
DROP INDEX thread_removals;
DROP INDEX thread_facts;
CREATE INDEX thread_forks ON thread_threads (fork_no) WHERE fork_no IS NOT NULL;

-- `first` is the position of its first event, `n` the number of its events, and `facts` how many of them transcripts
-- depend on. `sum` is the first 16 bytes of a SHA-256: of the sum of the block before, the numbers, and the SHA-256 of
-- the body.
CREATE TABLE thread_blocks (
    id          INTEGER PRIMARY KEY,
    thread_no   INTEGER NOT NULL REFERENCES thread_threads (no),
    first       INTEGER NOT NULL CHECK (first > 0),
    n           INTEGER NOT NULL CHECK (n > 0),
    epoch       INTEGER NOT NULL,
    facts       INTEGER NOT NULL CHECK (facts BETWEEN 0 AND n),
    sum         BLOB NOT NULL CHECK (octet_length(sum) = 16),
    body        BLOB NOT NULL,
    UNIQUE (thread_no, first)
) STRICT;

-- Link 1: a context belongs to exactly one thread (EK 4.2).
-- Statuses: 0 open, 1 streaming, 2 closed.
CREATE TABLE thread_contexts (
    thread_no   INTEGER PRIMARY KEY REFERENCES thread_threads (no),
    id          TEXT NOT NULL UNIQUE,
    key         TEXT,
    status      INTEGER NOT NULL CHECK (status BETWEEN 0 AND 2),
    block       INTEGER,
    content_offset INTEGER,
    content_length INTEGER,
    created_at  INTEGER NOT NULL,
    updated_at  INTEGER
) STRICT;

-- Link 2: an item belongs to a thread and its context (EK 4.3).
-- Types: 0 message, 1 action_execute, 2 action_result, 3 item_reference. Roles: 0 user, 1 assistant, 2 system,
-- 3 developer. Statuses: 0 stored, 1 pending, 2 completed. `place` is where a message to the agents stands in the
-- conversation: at its own event, or, if it waited, where its execution began. `answered_seq` is the first execution
-- of an item that did not wait.
CREATE TABLE thread_items (
    thread_no   INTEGER NOT NULL,
    seq         INTEGER NOT NULL,
    context_no  INTEGER NOT NULL REFERENCES thread_contexts (thread_no) CHECK (context_no = thread_no),
    id          TEXT NOT NULL,
    type        INTEGER NOT NULL CHECK (type BETWEEN 0 AND 3),
    role        INTEGER CHECK (role BETWEEN 0 AND 3),
    status      INTEGER NOT NULL CHECK (status BETWEEN 0 AND 2),
    channel     TEXT,
    execution_seq INTEGER,
    has_run     INTEGER NOT NULL CHECK (has_run IN (0, 1)),
    waiting     INTEGER NOT NULL CHECK (waiting IN (0, 1)),
    place       INTEGER,
    answered_seq INTEGER,
    block       INTEGER,
    content_offset INTEGER,
    content_length INTEGER,
    created_at  INTEGER NOT NULL,
    updated_at  INTEGER,
    PRIMARY KEY (thread_no, seq)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX thread_items_id ON thread_items (thread_no, id);
CREATE INDEX thread_items_kept ON thread_items (thread_no, seq) WHERE has_run = 0 AND execution_seq IS NULL;
CREATE INDEX thread_items_waiting ON thread_items (thread_no, seq) WHERE waiting = 1;
CREATE INDEX thread_items_said ON thread_items (thread_no, place)
    WHERE execution_seq IS NULL AND type = 0 AND place IS NOT NULL;

-- Link 3: an execution belongs to a thread and its context, and to the two items (EK 4.5).
-- Statuses: 0 executing, 1 completed, 2 failed.
CREATE TABLE thread_executions (
    thread_no   INTEGER NOT NULL,
    seq         INTEGER NOT NULL,
    context_no  INTEGER NOT NULL REFERENCES thread_contexts (thread_no) CHECK (context_no = thread_no),
    id          TEXT NOT NULL,
    trigger_seq INTEGER NOT NULL,
    reaction_seq INTEGER NOT NULL,
    workflow_run_id TEXT,
    status      INTEGER NOT NULL CHECK (status BETWEEN 0 AND 2),
    agent       TEXT,
    handoffs    INTEGER NOT NULL,
    interruption_reason TEXT,
    interruption_detail TEXT,
    end_seq     INTEGER,
    created_at  INTEGER NOT NULL,
    updated_at  INTEGER,
    PRIMARY KEY (thread_no, seq),
    FOREIGN KEY (thread_no, trigger_seq) REFERENCES thread_items (thread_no, seq),
    FOREIGN KEY (thread_no, reaction_seq) REFERENCES thread_items (thread_no, seq)
) STRICT, WITHOUT ROWID;
-- Never two executions at once on one thread.
CREATE UNIQUE INDEX thread_executions_running ON thread_executions (thread_no) WHERE status = 0;

-- Link 4: a step belongs to an execution (EK 4.6).
-- Statuses: 0 running, 1 completed, 2 failed. `answer_*` is the model's data about its response, `end_block` the block
-- with the calls, their results, and the calls that were left open.
CREATE TABLE thread_steps (
    thread_no   INTEGER NOT NULL,
    execution_seq INTEGER NOT NULL,
    iteration   INTEGER NOT NULL,
    seq         INTEGER NOT NULL,
    id          TEXT NOT NULL,
    event_seq   INTEGER NOT NULL,
    status      INTEGER NOT NULL CHECK (status BETWEEN 0 AND 2),
    input_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    answer_seq  INTEGER,
    answer_at   INTEGER,
    answer_block INTEGER,
    answer_offset INTEGER,
    answer_length INTEGER,
    end_seq     INTEGER,
    end_block   INTEGER,
    calls_offset INTEGER,
    calls_length INTEGER,
    results_offset INTEGER,
    results_length INTEGER,
    open_offset INTEGER,
    open_length INTEGER,
    continue_loop INTEGER CHECK (continue_loop IN (0, 1)),
    error_text  TEXT,
    created_at  INTEGER NOT NULL,
    updated_at  INTEGER,
    PRIMARY KEY (thread_no, execution_seq, iteration),
    FOREIGN KEY (thread_no, execution_seq) REFERENCES thread_executions (thread_no, seq),
    FOREIGN KEY (thread_no, event_seq) REFERENCES thread_items (thread_no, seq)
) STRICT, WITHOUT ROWID;

-- Link 5: a part belongs to a step (EK 4.7). `seq` is the event that wrote it last, `started_at` the start of an effect
-- tool.
CREATE TABLE thread_parts (
    thread_no   INTEGER NOT NULL,
    execution_seq INTEGER NOT NULL,
    iteration   INTEGER NOT NULL,
    idx         INTEGER NOT NULL CHECK (idx >= 0),
    seq         INTEGER NOT NULL,
    type        TEXT,
    call_id     TEXT,
    block       INTEGER NOT NULL,
    part_offset INTEGER NOT NULL,
    part_length INTEGER NOT NULL,
    started_at  INTEGER,
    created_at  INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL,
    PRIMARY KEY (thread_no, execution_seq, iteration, idx),
    FOREIGN KEY (thread_no, execution_seq, iteration)
        REFERENCES thread_steps (thread_no, execution_seq, iteration)
) STRICT, WITHOUT ROWID;

-- What readers leave out: `item ID` or `step ID`.
CREATE TABLE thread_removals (
    thread_no   INTEGER NOT NULL REFERENCES thread_threads (no),
    target      TEXT NOT NULL,
    seq         INTEGER NOT NULL,
    PRIMARY KEY (thread_no, target)
) STRICT, WITHOUT ROWID;

-- The threads in which something waits for a person, or may. `calls` is the event that left calls open, at `calls_at`;
-- `asks` is the first event that may open a request of AITP, and `asked` the position of the last one. The number of
-- an event is that of its block times 2^20 and its place in the block.
CREATE TABLE thread_waits (
    thread_no   INTEGER PRIMARY KEY REFERENCES thread_threads (no),
    tenant      TEXT NOT NULL,
    calls       INTEGER,
    calls_at    INTEGER,
    asks        INTEGER,
    asked       INTEGER,
    sum         BLOB,
    number      INTEGER GENERATED ALWAYS AS (min(coalesce(calls, asks), coalesce(asks, calls))) VIRTUAL,
    CHECK (calls IS NOT NULL OR asks IS NOT NULL),
    CHECK ((calls IS NULL) = (calls_at IS NULL)),
    CHECK ((asks IS NULL) = (asked IS NULL))
) STRICT;
CREATE INDEX thread_waits_order ON thread_waits (tenant, number);

-- The tables with texts, under the names of EK 4.
CREATE VIEW thread_contexts_text AS
SELECT c.thread_no, c.id, c.key,
       CASE c.status WHEN 0 THEN 'open' WHEN 1 THEN 'streaming' ELSE 'closed' END AS status,
       (SELECT CAST(substr(b.body, c.content_offset + 1, c.content_length) AS TEXT)
        FROM thread_blocks b WHERE b.id = c.block) AS content,
       c.created_at, c.updated_at
FROM thread_contexts c;

CREATE VIEW thread_items_text AS
SELECT i.thread_no, i.seq, i.id, (SELECT c.id FROM thread_contexts c WHERE c.thread_no = i.context_no) AS context_id,
       CASE i.type WHEN 0 THEN 'message' WHEN 1 THEN 'action_execute' WHEN 2 THEN 'action_result'
           ELSE 'item_reference' END AS type,
       CASE i.role WHEN 0 THEN 'user' WHEN 1 THEN 'assistant' WHEN 2 THEN 'system' WHEN 3 THEN 'developer' END AS role,
       CASE i.status WHEN 0 THEN 'stored' WHEN 1 THEN 'pending' ELSE 'completed' END AS status,
       i.channel,
       (SELECT CAST(substr(b.body, i.content_offset + 1, i.content_length) AS TEXT)
        FROM thread_blocks b WHERE b.id = i.block) AS content,
       (SELECT x.id FROM thread_executions x WHERE x.thread_no = i.thread_no AND x.seq = i.execution_seq)
           AS execution_id,
       i.waiting, i.place, i.created_at, i.updated_at
FROM thread_items i;

CREATE VIEW thread_executions_text AS
SELECT x.thread_no, x.seq, x.id, c.id AS context_id, t.id AS trigger_item_id, r.id AS reaction_item_id,
       x.workflow_run_id, CASE x.status WHEN 0 THEN 'executing' WHEN 1 THEN 'completed' ELSE 'failed' END AS status,
       x.agent, x.interruption_reason, x.interruption_detail, x.end_seq, x.created_at, x.updated_at
FROM thread_executions x
JOIN thread_contexts c ON c.thread_no = x.context_no
JOIN thread_items t ON t.thread_no = x.thread_no AND t.seq = x.trigger_seq
JOIN thread_items r ON r.thread_no = x.thread_no AND r.seq = x.reaction_seq;

CREATE VIEW thread_steps_text AS
SELECT s.thread_no, s.seq, s.id, x.id AS execution_id, s.iteration,
       CASE s.status WHEN 0 THEN 'running' WHEN 1 THEN 'completed' ELSE 'failed' END AS status,
       i.id AS event_id,
       (SELECT CAST(substr(b.body, s.calls_offset + 1, s.calls_length) AS TEXT)
        FROM thread_blocks b WHERE b.id = s.end_block) AS tool_calls,
       (SELECT CAST(substr(b.body, s.results_offset + 1, s.results_length) AS TEXT)
        FROM thread_blocks b WHERE b.id = s.end_block) AS tool_execution_results,
       (SELECT CAST(substr(b.body, s.open_offset + 1, s.open_length) AS TEXT)
        FROM thread_blocks b WHERE b.id = s.end_block) AS open_calls,
       s.continue_loop, s.error_text, s.created_at, s.updated_at
FROM thread_steps s
JOIN thread_executions x ON x.thread_no = s.thread_no AND x.seq = s.execution_seq
JOIN thread_items i ON i.thread_no = s.thread_no AND i.seq = s.event_seq;

CREATE VIEW thread_parts_text AS
SELECT p.thread_no, p.seq, s.id || ':' || p.idx AS key, s.id AS step_id, p.idx, p.type,
       (SELECT CAST(substr(b.body, p.part_offset + 1, p.part_length) AS TEXT)
        FROM thread_blocks b WHERE b.id = p.block) AS part,
       p.created_at, p.updated_at
FROM thread_parts p
JOIN thread_steps s ON s.thread_no = p.thread_no AND s.execution_seq = p.execution_seq AND s.iteration = p.iteration;

-- Traces (EK-14): a run for each execution, spans for it, its steps and its tools, and the moments between.
CREATE VIEW thread_trace_runs AS
SELECT x.thread_no, x.id, x.agent AS name,
       CASE x.status WHEN 0 THEN 'running' WHEN 1 THEN 'ok' ELSE 'error' END AS status,
       (SELECT count(*) FROM thread_steps s WHERE s.thread_no = x.thread_no AND s.execution_seq = x.seq) AS n_steps,
       (SELECT coalesce(sum(s.input_tokens), 0) FROM thread_steps s
        WHERE s.thread_no = x.thread_no AND s.execution_seq = x.seq) AS input_tokens,
       (SELECT coalesce(sum(s.output_tokens), 0) FROM thread_steps s
        WHERE s.thread_no = x.thread_no AND s.execution_seq = x.seq) AS output_tokens,
       x.created_at AS started_at,
       CASE WHEN x.status > 0 THEN x.updated_at END AS ended_at,
       CASE WHEN x.status > 0 THEN x.updated_at - x.created_at END AS duration
FROM thread_executions x;

CREATE VIEW thread_trace_spans AS
SELECT spans.*, ended_at - started_at AS duration FROM (
    SELECT x.thread_no, 'execution' AS kind, x.id, x.id AS run_id, NULL AS parent_id, x.agent AS name,
           CASE x.status WHEN 0 THEN 'running' WHEN 1 THEN 'ok' ELSE 'error' END AS status,
           x.interruption_reason AS error_text, x.created_at AS started_at,
           CASE WHEN x.status > 0 THEN x.updated_at END AS ended_at
    FROM thread_executions x
    UNION ALL
    SELECT s.thread_no, 'step', s.id, x.id, x.id, 'step ' || s.iteration,
           CASE s.status WHEN 0 THEN 'running' WHEN 1 THEN 'ok' ELSE 'error' END,
           s.error_text, s.created_at, CASE WHEN s.status > 0 THEN s.updated_at END
    FROM thread_steps s JOIN thread_executions x ON x.thread_no = s.thread_no AND x.seq = s.execution_seq
    UNION ALL
    SELECT c.thread_no, 'tool', c.step_id || ':' || c.call_id, c.run_id, c.step_id, substr(c.type, 6),
           CASE WHEN c.state = 'output-available' THEN 'ok'
                WHEN c.state GLOB 'output-*' OR c.step_status > 0 THEN 'error'
                ELSE 'running' END,
           CASE WHEN c.state = 'output-available' THEN NULL
                WHEN c.state GLOB 'output-*' THEN c.state
                WHEN c.step_status > 0 THEN 'no result' END,
           coalesce(c.started_at, c.created_at),
           CASE WHEN c.state GLOB 'output-*' THEN c.updated_at WHEN c.step_status > 0 THEN c.step_ended_at END
    FROM (
        SELECT p.thread_no, s.id AS step_id, x.id AS run_id, p.call_id, p.type, p.started_at, p.created_at, p.updated_at,
               s.status AS step_status, s.updated_at AS step_ended_at,
               (SELECT CAST(substr(b.body, p.part_offset + 1, p.part_length) AS TEXT) ->> '$.state'
                FROM thread_blocks b WHERE b.id = p.block) AS state
        FROM thread_parts p
        JOIN thread_steps s ON s.thread_no = p.thread_no AND s.execution_seq = p.execution_seq
            AND s.iteration = p.iteration
        JOIN thread_executions x ON x.thread_no = p.thread_no AND x.seq = p.execution_seq
        WHERE p.call_id IS NOT NULL
    ) c
) spans;

CREATE VIEW thread_trace_events AS
SELECT x.thread_no, x.seq, x.id AS run_id, x.id AS span_id, 'execution.created' AS name, x.created_at AS at,
       NULL AS model, NULL AS provider, NULL AS input_tokens, NULL AS output_tokens, NULL AS data
FROM thread_executions x
UNION ALL
SELECT x.thread_no, x.end_seq, x.id, x.id, CASE x.status WHEN 1 THEN 'execution.completed' ELSE 'execution.failed' END,
       x.updated_at, NULL, NULL, NULL, NULL, NULL
FROM thread_executions x WHERE x.end_seq IS NOT NULL
UNION ALL
SELECT s.thread_no, s.seq, x.id, s.id, 'step.created', s.created_at, NULL, NULL, NULL, NULL, NULL
FROM thread_steps s JOIN thread_executions x ON x.thread_no = s.thread_no AND x.seq = s.execution_seq
UNION ALL
SELECT s.thread_no, s.end_seq, x.id, s.id, CASE s.status WHEN 1 THEN 'step.completed' ELSE 'step.failed' END,
       s.updated_at, NULL, NULL, NULL, NULL, NULL
FROM thread_steps s JOIN thread_executions x ON x.thread_no = s.thread_no AND x.seq = s.execution_seq
WHERE s.end_seq IS NOT NULL
UNION ALL
SELECT a.thread_no, a.answer_seq, a.run_id, a.id, 'llm', a.answer_at,
       CASE json_type(a.data, '$.model') WHEN 'text' THEN a.data ->> '$.model' END,
       CASE json_type(a.data, '$.provider') WHEN 'text' THEN a.data ->> '$.provider' END,
       a.input_tokens, a.output_tokens, a.data
FROM (
    SELECT s.*, x.id AS run_id,
           (SELECT CAST(substr(b.body, s.answer_offset + 1, s.answer_length) AS TEXT)
            FROM thread_blocks b WHERE b.id = s.answer_block) AS data
    FROM thread_steps s JOIN thread_executions x ON x.thread_no = s.thread_no AND x.seq = s.execution_seq
    WHERE s.answer_seq IS NOT NULL
) a;
