-- The latest state of each session of agents that run in memory (UAP 12.4). It is not in any log.
-- The state comes last: what precedes it is read without it.
CREATE TABLE agent_checkpoints (
    no          INTEGER PRIMARY KEY,
    tenant      TEXT NOT NULL,
    session_id  TEXT NOT NULL,
    checkpoint_id TEXT NOT NULL,
    saved_at    INTEGER NOT NULL,
    step        INTEGER NOT NULL,
    agent_id    TEXT,
    state       TEXT NOT NULL,
    UNIQUE (tenant, session_id)
) STRICT;
