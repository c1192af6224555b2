-- What a step added to its agent's state, and the calls it left open on purpose (JSON).
ALTER TABLE thread_steps ADD COLUMN agent_state TEXT;
ALTER TABLE thread_steps ADD COLUMN open_calls TEXT;

-- The last execution of a thread.
CREATE INDEX thread_executions_order ON thread_executions (thread_no, seq);
