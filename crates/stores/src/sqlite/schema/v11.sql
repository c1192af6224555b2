-- A block whose content was erased: the SHA-256 of the body that was written, then that of the body in its place. The
-- chain of sums has the first one.
ALTER TABLE thread_blocks ADD COLUMN erased BLOB CHECK (erased IS NULL OR octet_length(erased) = 64);
CREATE INDEX thread_blocks_erased ON thread_blocks (thread_no, first) WHERE erased IS NOT NULL;

-- Views only: the rows of contexts, items and executions name their thread (EK 4.2, 4.5, and the links of EK 9), and a
-- reaction has the content that its parts are (EK 4.7).
DROP VIEW thread_contexts_text;
DROP VIEW thread_items_text;
DROP VIEW thread_executions_text;

CREATE VIEW thread_contexts_text AS
SELECT c.thread_no, c.id, c.key, t.id AS thread_id,
       CASE c.status WHEN 0 THEN 'open' WHEN 1 THEN 'streaming' ELSE 'closed' END AS status,
       (SELECT CAST(substr(b.body, c.content_offset + 1, c.content_length) AS TEXT)
        FROM thread_blocks b WHERE b.id = c.block) AS content,
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
           THEN (SELECT CAST(substr(b.body, i.content_offset + 1, i.content_length) AS TEXT)
                 FROM thread_blocks b WHERE b.id = i.block)
       WHEN i.execution_seq IS NOT NULL AND i.role = 1
           THEN (SELECT '[' || group_concat(p.part, ',') || ']' FROM (
                     SELECT CAST(substr(b.body, p.part_offset + 1, p.part_length) AS TEXT) AS part
                     FROM thread_parts p JOIN thread_blocks b ON b.id = p.block
                     WHERE p.thread_no = i.thread_no AND p.execution_seq = i.execution_seq
                     ORDER BY p.iteration, p.idx) p)
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
