-- The processes that share the store. A node lives while its lease lasts.
CREATE TABLE nodes (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name        text COLLATE "C" NOT NULL UNIQUE,
    version     text NOT NULL,
    lease_until timestamptz NOT NULL
) WITH (fillfactor = 50);

-- Numbers of threads, and of their changes in the order of the writes. Numbers may be left out.
CREATE SEQUENCE thread_numbers AS bigint;
CREATE SEQUENCE thread_changes AS bigint;

-- Texts that clients write have U+0000 as U+0001 U+0001 and U+0001 as U+0001 U+0002, because PostgreSQL has no U+0000.
-- This does not change their order or their prefixes.
-- `owner` is the node that owns the thread's run; 0 if the run is offered, null if the thread has no work. `sum` is that
-- of the last block.
CREATE TABLE thread_threads (
    no          bigint PRIMARY KEY,
    id          text COLLATE "C" NOT NULL UNIQUE,
    tenant      text COLLATE "C" NOT NULL,
    key         text COLLATE "C",
    status      text NOT NULL CHECK (status IN ('open', 'streaming', 'closed', 'failed')),
    title       text,
    metadata    text,
    fork_no     bigint REFERENCES thread_threads (no),
    fork_seq    bigint,
    created_at  bigint NOT NULL,
    updated_at  bigint NOT NULL,
    head_seq    bigint NOT NULL,
    bytes       bigint NOT NULL,
    epoch       bigint NOT NULL,
    owner       bigint,
    change      bigint NOT NULL,
    sum         bytea NOT NULL CHECK (octet_length(sum) = 16),
    UNIQUE (tenant, key)
) WITH (fillfactor = 70);
CREATE INDEX thread_recent ON thread_threads (tenant, change);
CREATE INDEX thread_forks ON thread_threads (fork_no) WHERE fork_no IS NOT NULL;
CREATE INDEX thread_owned ON thread_threads (owner) WHERE owner IS NOT NULL;

-- The log: one block for each commit. `first` is the position of its first event, `n` the number of its events, and
-- `facts` how many of them transcripts depend on. `id` orders the events of all threads. `sum` is the first 16 bytes of
-- a SHA-256: of the sum of the block before, the numbers, and the SHA-256 of the body. Of a block whose content was
-- erased, `erased` has the SHA-256 of the body that was written, then that of the body in its place.
CREATE TABLE thread_blocks (
    thread_no   bigint NOT NULL,
    first       bigint NOT NULL CHECK (first > 0),
    n           bigint NOT NULL CHECK (n > 0),
    epoch       bigint NOT NULL,
    facts       bigint NOT NULL CHECK (facts BETWEEN 0 AND n),
    id          bigint GENERATED ALWAYS AS IDENTITY,
    sum         bytea NOT NULL CHECK (octet_length(sum) = 16),
    body        bytea NOT NULL,
    erased      bytea CHECK (erased IS NULL OR octet_length(erased) = 64),
    PRIMARY KEY (thread_no, first)
);
ALTER TABLE thread_blocks ALTER COLUMN body SET STORAGE EXTERNAL;
CREATE INDEX thread_blocks_erased ON thread_blocks (thread_no, first) WHERE erased IS NOT NULL;

-- Requests that were answered.
CREATE TABLE thread_tokens (
    thread_no   bigint NOT NULL,
    token       text COLLATE "C" NOT NULL,
    answer      text NOT NULL,
    seq         bigint NOT NULL,
    PRIMARY KEY (thread_no, token)
);

-- The tables that are derived from the log. `block` is the first event of a block of the thread; offsets and lengths are
-- bytes of its body.

-- Link 1: a context belongs to exactly one thread (EK 4.2).
-- Statuses: 0 open, 1 streaming, 2 closed.
CREATE TABLE thread_contexts (
    thread_no   bigint PRIMARY KEY REFERENCES thread_threads (no),
    id          text COLLATE "C" NOT NULL UNIQUE,
    key         text,
    status      smallint NOT NULL CHECK (status BETWEEN 0 AND 2),
    block       bigint,
    content_offset bigint,
    content_length bigint,
    created_at  bigint NOT NULL,
    updated_at  bigint
);

-- Link 2: an item belongs to a thread and its context (EK 4.3).
-- Types: 0 message, 1 action_execute, 2 action_result, 3 item_reference. Roles: 0 user, 1 assistant, 2 system,
-- 3 developer. Statuses: 0 stored, 1 pending, 2 completed. `place` is where a message to the agents stands in the
-- conversation: at its own event, or, if it waited, where its execution began. `answered_seq` is the first execution
-- of an item that did not wait.
CREATE TABLE thread_items (
    thread_no   bigint NOT NULL,
    seq         bigint NOT NULL,
    context_no  bigint NOT NULL REFERENCES thread_contexts (thread_no) CHECK (context_no = thread_no),
    id          text COLLATE "C" NOT NULL,
    type        smallint NOT NULL CHECK (type BETWEEN 0 AND 3),
    role        smallint CHECK (role BETWEEN 0 AND 3),
    status      smallint NOT NULL CHECK (status BETWEEN 0 AND 2),
    channel     text,
    execution_seq bigint,
    has_run     boolean NOT NULL,
    waiting     boolean NOT NULL,
    place       bigint,
    answered_seq bigint,
    block       bigint,
    content_offset bigint,
    content_length bigint,
    created_at  bigint NOT NULL,
    updated_at  bigint,
    PRIMARY KEY (thread_no, seq)
);
CREATE UNIQUE INDEX thread_items_id ON thread_items (thread_no, id);
CREATE INDEX thread_items_kept ON thread_items (thread_no, seq) WHERE NOT has_run AND execution_seq IS NULL;
CREATE INDEX thread_items_waiting ON thread_items (thread_no, seq) WHERE waiting;
CREATE INDEX thread_items_said ON thread_items (thread_no, place)
    WHERE execution_seq IS NULL AND type = 0 AND place IS NOT NULL;

-- Link 3: an execution belongs to a thread and its context, and to the two items (EK 4.5).
-- Statuses: 0 executing, 1 completed, 2 failed.
CREATE TABLE thread_executions (
    thread_no   bigint NOT NULL,
    seq         bigint NOT NULL,
    context_no  bigint NOT NULL REFERENCES thread_contexts (thread_no) CHECK (context_no = thread_no),
    id          text COLLATE "C" NOT NULL,
    trigger_seq bigint NOT NULL,
    reaction_seq bigint NOT NULL,
    workflow_run_id text,
    status      smallint NOT NULL CHECK (status BETWEEN 0 AND 2),
    agent       text,
    handoffs    bigint NOT NULL,
    interruption_reason text,
    interruption_detail text,
    end_seq     bigint,
    created_at  bigint NOT NULL,
    updated_at  bigint,
    PRIMARY KEY (thread_no, seq),
    FOREIGN KEY (thread_no, trigger_seq) REFERENCES thread_items (thread_no, seq),
    FOREIGN KEY (thread_no, reaction_seq) REFERENCES thread_items (thread_no, seq)
);
-- Never two executions at once on one thread.
CREATE UNIQUE INDEX thread_executions_running ON thread_executions (thread_no) WHERE status = 0;

-- Link 4: a step belongs to an execution (EK 4.6).
-- Statuses: 0 running, 1 completed, 2 failed. `answer_*` is the model's data about its response, `end_block` the block
-- with the calls, their results, and the calls that were left open. `asks` is whether one of those needs a person.
CREATE TABLE thread_steps (
    thread_no   bigint NOT NULL,
    execution_seq bigint NOT NULL,
    iteration   bigint NOT NULL,
    seq         bigint NOT NULL,
    id          text COLLATE "C" NOT NULL,
    event_seq   bigint NOT NULL,
    status      smallint NOT NULL CHECK (status BETWEEN 0 AND 2),
    input_tokens bigint NOT NULL,
    output_tokens bigint NOT NULL,
    answer_seq  bigint,
    answer_at   bigint,
    answer_block bigint,
    answer_offset bigint,
    answer_length bigint,
    end_seq     bigint,
    end_block   bigint,
    calls_offset bigint,
    calls_length bigint,
    results_offset bigint,
    results_length bigint,
    open_offset bigint,
    open_length bigint,
    asks        boolean NOT NULL,
    continue_loop boolean,
    error_text  text,
    created_at  bigint NOT NULL,
    updated_at  bigint,
    PRIMARY KEY (thread_no, execution_seq, iteration),
    FOREIGN KEY (thread_no, execution_seq) REFERENCES thread_executions (thread_no, seq),
    FOREIGN KEY (thread_no, event_seq) REFERENCES thread_items (thread_no, seq)
);

-- Link 5: a part belongs to a step (EK 4.7). `seq` is the event that wrote it last, `started_at` the start of an effect
-- tool.
CREATE TABLE thread_parts (
    thread_no   bigint NOT NULL,
    execution_seq bigint NOT NULL,
    iteration   bigint NOT NULL,
    idx         bigint NOT NULL CHECK (idx >= 0),
    seq         bigint NOT NULL,
    type        text,
    call_id     text,
    block       bigint NOT NULL,
    part_offset bigint NOT NULL,
    part_length bigint NOT NULL,
    started_at  bigint,
    created_at  bigint NOT NULL,
    updated_at  bigint NOT NULL,
    PRIMARY KEY (thread_no, execution_seq, iteration, idx),
    FOREIGN KEY (thread_no, execution_seq, iteration)
        REFERENCES thread_steps (thread_no, execution_seq, iteration)
);

-- What readers leave out: `item ID` or `step ID`.
CREATE TABLE thread_removals (
    thread_no   bigint NOT NULL REFERENCES thread_threads (no),
    target      text COLLATE "C" NOT NULL,
    seq         bigint NOT NULL,
    PRIMARY KEY (thread_no, target)
);

-- The threads in which something waits for a person, or may. `calls` is the event that left calls open, at `calls_at`;
-- `asks` is the first event that may open a request of AITP, and `asked` the position of the last one. The number of
-- an event is that of its block times 2^20 and its place in the block.
CREATE TABLE thread_waits (
    thread_no   bigint PRIMARY KEY REFERENCES thread_threads (no),
    tenant      text COLLATE "C" NOT NULL,
    calls       bigint,
    calls_at    bigint,
    asks        bigint,
    asked       bigint,
    number      bigint NOT NULL GENERATED ALWAYS AS (least(calls, asks)) STORED,
    CHECK ((calls IS NULL) = (calls_at IS NULL)),
    CHECK ((asks IS NULL) = (asked IS NULL))
);
CREATE INDEX thread_waits_order ON thread_waits (tenant, number);

-- The words of texts and titles, without the texts. A title has the position 0, and its thread's number and 2^62 as
-- number. `words` also has a word for the tenant and one for the thread.
CREATE TABLE thread_words (
    thread_no   bigint NOT NULL REFERENCES thread_threads (no),
    seq         bigint NOT NULL,
    number      bigint NOT NULL,
    role        smallint,
    is_part     boolean NOT NULL,
    block       bigint,
    text_offset bigint,
    text_length bigint,
    words       tsvector NOT NULL,
    PRIMARY KEY (thread_no, seq)
);
CREATE INDEX thread_words_words ON thread_words USING gin (words);

-- What a tenant has besides its threads (assistants, files): JSON as it was received. It is in no log. A content is
-- stored once for each tenant.
CREATE TABLE tenant_contents (
    no          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant      text COLLATE "C" NOT NULL,
    sha256      bytea NOT NULL CHECK (octet_length(sha256) = 32),
    content     bytea NOT NULL,
    UNIQUE (tenant, sha256)
);
ALTER TABLE tenant_contents ALTER COLUMN content SET STORAGE EXTERNAL;

CREATE TABLE tenant_objects (
    no          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant      text COLLATE "C" NOT NULL,
    kind        text COLLATE "C" NOT NULL,
    id          text COLLATE "C" NOT NULL,
    created_at  bigint NOT NULL,
    content_no  bigint REFERENCES tenant_contents (no),
    json        text NOT NULL,
    thread_no   bigint REFERENCES thread_threads (no),
    UNIQUE (tenant, kind, id)
);
CREATE INDEX tenant_objects_order ON tenant_objects (tenant, kind, created_at, id);
CREATE INDEX tenant_objects_content ON tenant_objects (content_no) WHERE content_no IS NOT NULL;
CREATE INDEX tenant_objects_thread ON tenant_objects (thread_no) WHERE thread_no IS NOT NULL;

-- The storage usage of each tenant, as sums over several rows, so that writers rarely wait for each other. Those that
-- may reach a limit hold the row with the shard -1.
CREATE TABLE tenant_usage (
    tenant      text COLLATE "C" NOT NULL,
    shard       smallint NOT NULL,
    threads     bigint NOT NULL,
    bytes       bigint NOT NULL,
    files       bigint NOT NULL,
    PRIMARY KEY (tenant, shard)
) WITH (fillfactor = 50);

-- The latest state of each session of agents that run in memory (UAP 12.4). It is in no log.
CREATE TABLE agent_checkpoints (
    tenant      text COLLATE "C" NOT NULL,
    session_id  text COLLATE "C" NOT NULL,
    checkpoint_id text NOT NULL,
    saved_at    bigint NOT NULL,
    step        bigint NOT NULL,
    agent_id    text,
    state       text NOT NULL,
    PRIMARY KEY (tenant, session_id)
);

-- The tables with texts, under the names of EK 4.
CREATE VIEW thread_contexts_text AS
SELECT c.thread_no, c.id, c.key, t.id AS thread_id,
       CASE c.status WHEN 0 THEN 'open' WHEN 1 THEN 'streaming' ELSE 'closed' END AS status,
       (SELECT convert_from(substring(b.body FROM c.content_offset::int + 1 FOR c.content_length::int), 'UTF8')
        FROM thread_blocks b WHERE b.thread_no = c.thread_no AND b.first = c.block) AS content,
       c.created_at, c.updated_at
FROM thread_contexts c JOIN thread_threads t ON t.no = c.thread_no;

CREATE VIEW thread_items_text AS
SELECT i.thread_no, i.seq, i.id, t.id AS thread_id,
       (SELECT c.id FROM thread_contexts c WHERE c.thread_no = i.context_no) AS context_id,
       CASE i.type WHEN 0 THEN 'message' WHEN 1 THEN 'action_execute' WHEN 2 THEN 'action_result'
           ELSE 'item_reference' END AS type,
       CASE i.role WHEN 0 THEN 'user' WHEN 1 THEN 'assistant' WHEN 2 THEN 'system' WHEN 3 THEN 'developer' END AS role,
       CASE i.status WHEN 0 THEN 'stored' WHEN 1 THEN 'pending' ELSE 'completed' END AS status,
       i.channel,
       CASE WHEN i.block IS NOT NULL
           THEN (SELECT convert_from(substring(b.body FROM i.content_offset::int + 1 FOR i.content_length::int), 'UTF8')
                 FROM thread_blocks b WHERE b.thread_no = i.thread_no AND b.first = i.block)
       WHEN i.execution_seq IS NOT NULL AND i.role = 1
           THEN (SELECT '[' || string_agg(
                        convert_from(substring(b.body FROM p.part_offset::int + 1 FOR p.part_length::int), 'UTF8'), ','
                        ORDER BY p.iteration, p.idx) || ']'
                 FROM thread_parts p JOIN thread_blocks b ON b.thread_no = p.thread_no AND b.first = p.block
                 WHERE p.thread_no = i.thread_no AND p.execution_seq = i.execution_seq)
       END AS content,
       (SELECT x.id FROM thread_executions x WHERE x.thread_no = i.thread_no AND x.seq = i.execution_seq)
           AS execution_id,
       i.waiting, i.place, i.created_at, i.updated_at
FROM thread_items i JOIN thread_threads t ON t.no = i.thread_no;

CREATE VIEW thread_executions_text AS
SELECT x.thread_no, x.seq, x.id, h.id AS thread_id, c.id AS context_id, t.id AS trigger_item_id,
       r.id AS reaction_item_id, x.workflow_run_id,
       CASE x.status WHEN 0 THEN 'executing' WHEN 1 THEN 'completed' ELSE 'failed' END AS status,
       x.agent, x.interruption_reason, x.interruption_detail, x.end_seq, x.created_at, x.updated_at
FROM thread_executions x
JOIN thread_threads h ON h.no = x.thread_no
JOIN thread_contexts c ON c.thread_no = x.context_no
JOIN thread_items t ON t.thread_no = x.thread_no AND t.seq = x.trigger_seq
JOIN thread_items r ON r.thread_no = x.thread_no AND r.seq = x.reaction_seq;

CREATE VIEW thread_steps_text AS
SELECT s.thread_no, s.seq, s.id, x.id AS execution_id, s.iteration,
       CASE s.status WHEN 0 THEN 'running' WHEN 1 THEN 'completed' ELSE 'failed' END AS status,
       i.id AS event_id,
       convert_from(substring(b.body FROM s.calls_offset::int + 1 FOR s.calls_length::int), 'UTF8') AS tool_calls,
       convert_from(substring(b.body FROM s.results_offset::int + 1 FOR s.results_length::int), 'UTF8')
           AS tool_execution_results,
       convert_from(substring(b.body FROM s.open_offset::int + 1 FOR s.open_length::int), 'UTF8') AS open_calls,
       s.continue_loop, s.error_text, s.created_at, s.updated_at
FROM thread_steps s
JOIN thread_executions x ON x.thread_no = s.thread_no AND x.seq = s.execution_seq
JOIN thread_items i ON i.thread_no = s.thread_no AND i.seq = s.event_seq
LEFT JOIN thread_blocks b ON b.thread_no = s.thread_no AND b.first = s.end_block;

CREATE VIEW thread_parts_text AS
SELECT p.thread_no, p.seq, s.id || ':' || p.idx AS key, s.id AS step_id, p.idx, p.type,
       (SELECT convert_from(substring(b.body FROM p.part_offset::int + 1 FOR p.part_length::int), 'UTF8')
        FROM thread_blocks b WHERE b.thread_no = p.thread_no AND b.first = p.block) AS part,
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
                WHEN starts_with(c.state, 'output-') OR c.step_status > 0 THEN 'error'
                ELSE 'running' END,
           CASE WHEN c.state = 'output-available' THEN NULL
                WHEN starts_with(c.state, 'output-') THEN c.state
                WHEN c.step_status > 0 THEN 'no result' END,
           coalesce(c.started_at, c.created_at),
           CASE WHEN starts_with(c.state, 'output-') THEN c.updated_at WHEN c.step_status > 0 THEN c.step_ended_at END
    FROM (
        SELECT p.thread_no, s.id AS step_id, x.id AS run_id, p.call_id, p.type, p.started_at, p.created_at, p.updated_at,
               s.status AS step_status, s.updated_at AS step_ended_at,
               (SELECT convert_from(substring(b.body FROM p.part_offset::int + 1 FOR p.part_length::int), 'UTF8')::json
                       ->> 'state'
                FROM thread_blocks b WHERE b.thread_no = p.thread_no AND b.first = p.block) AS state
        FROM thread_parts p
        JOIN thread_steps s ON s.thread_no = p.thread_no AND s.execution_seq = p.execution_seq
            AND s.iteration = p.iteration
        JOIN thread_executions x ON x.thread_no = p.thread_no AND x.seq = p.execution_seq
        WHERE p.call_id IS NOT NULL
    ) c
) spans;

CREATE VIEW thread_trace_events AS
SELECT x.thread_no, x.seq, x.id AS run_id, x.id AS span_id, 'execution.created' AS name, x.created_at AS at,
       NULL::bigint AS input_tokens, NULL::bigint AS output_tokens, NULL AS data
FROM thread_executions x
UNION ALL
SELECT x.thread_no, x.end_seq, x.id, x.id, CASE x.status WHEN 1 THEN 'execution.completed' ELSE 'execution.failed' END,
       x.updated_at, NULL, NULL, NULL
FROM thread_executions x WHERE x.end_seq IS NOT NULL
UNION ALL
SELECT s.thread_no, s.seq, x.id, s.id, 'step.created', s.created_at, NULL, NULL, NULL
FROM thread_steps s JOIN thread_executions x ON x.thread_no = s.thread_no AND x.seq = s.execution_seq
UNION ALL
SELECT s.thread_no, s.end_seq, x.id, s.id, CASE s.status WHEN 1 THEN 'step.completed' ELSE 'step.failed' END,
       s.updated_at, NULL, NULL, NULL
FROM thread_steps s JOIN thread_executions x ON x.thread_no = s.thread_no AND x.seq = s.execution_seq
WHERE s.end_seq IS NOT NULL
UNION ALL
SELECT s.thread_no, s.answer_seq, x.id, s.id, 'llm', s.answer_at, s.input_tokens, s.output_tokens,
       (SELECT convert_from(substring(b.body FROM s.answer_offset::int + 1 FOR s.answer_length::int), 'UTF8')
        FROM thread_blocks b WHERE b.thread_no = s.thread_no AND b.first = s.answer_block)
FROM thread_steps s JOIN thread_executions x ON x.thread_no = s.thread_no AND x.seq = s.execution_seq
WHERE s.answer_seq IS NOT NULL;
