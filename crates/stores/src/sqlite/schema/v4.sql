-- What a tenant keeps beside its threads (assistants, files): JSON as it came. It is not in any log.
-- A content is kept once a tenant, and goes with the last object that has it.
CREATE TABLE tenant_contents (
    no          INTEGER PRIMARY KEY,
    tenant      TEXT NOT NULL,
    sha256      BLOB NOT NULL CHECK (octet_length(sha256) = 32),
    content     BLOB NOT NULL,
    UNIQUE (tenant, sha256)
) STRICT;

CREATE TABLE tenant_objects (
    no          INTEGER PRIMARY KEY,
    tenant      TEXT NOT NULL,
    kind        TEXT NOT NULL,
    id          TEXT NOT NULL,
    created_at  INTEGER NOT NULL,
    content_no  INTEGER REFERENCES tenant_contents (no),
    json        TEXT NOT NULL,
    UNIQUE (tenant, kind, id)
) STRICT;
CREATE INDEX tenant_objects_order ON tenant_objects (tenant, kind, created_at, id);
CREATE INDEX tenant_objects_content ON tenant_objects (content_no) WHERE content_no IS NOT NULL;

-- Where what was said to the agents stands in the conversation: at its own event, or, if it waited, where its
-- execution began. Null while it waits, and for what an execution writes.
ALTER TABLE thread_items ADD COLUMN place INTEGER;
UPDATE thread_items SET place = CASE WHEN run IS NULL THEN seq ELSE (
    SELECT min(x.seq) FROM thread_executions x
    WHERE x.thread_no = thread_items.thread_no AND x.trigger_item_id = thread_items.id) END
WHERE execution_id IS NULL;
CREATE INDEX thread_items_said ON thread_items (thread_no, place)
    WHERE execution_id IS NULL AND type = 'message' AND place IS NOT NULL;

-- The last event of an execution. 15 is thread.finished.
ALTER TABLE thread_executions ADD COLUMN end_seq INTEGER;
UPDATE thread_executions SET end_seq = (
    SELECT e.seq FROM thread_events e
    WHERE e.thread_no = thread_executions.thread_no AND e.kind <> 14 AND e.kind = 15 AND e.seq > thread_executions.seq
    ORDER BY e.seq LIMIT 1)
WHERE status <> 'executing';

-- What readers leave out. 36 is the marker data-item-removed.
CREATE INDEX thread_removals ON thread_events (
    thread_no, coalesce('item ' || (payload ->> '$.data.itemId'), 'step ' || (payload ->> '$.data.stepId')))
    WHERE kind = 36;
