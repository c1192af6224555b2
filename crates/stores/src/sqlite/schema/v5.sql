-- What lies beside a thread goes with it, in the same transaction.
ALTER TABLE tenant_objects ADD COLUMN thread_no INTEGER REFERENCES thread_threads (no);
CREATE INDEX tenant_objects_thread ON tenant_objects (thread_no) WHERE thread_no IS NOT NULL;

-- Until now the kind or the id alone said whose an object was: it ends with the thread's id, but that of a
-- deleted response, which begins with the 32 digits of it.
CREATE TEMP TABLE beside_threads (no INTEGER PRIMARY KEY, tenant TEXT NOT NULL, thread TEXT NOT NULL);
INSERT INTO beside_threads
    SELECT no, tenant, CASE
        WHEN kind = 'aitp.desk' THEN id
        WHEN kind = 'responses.deleted' THEN
            substr(id, 6, 8) || '-' || substr(id, 14, 4) || '-' || substr(id, 18, 4) || '-' ||
            substr(id, 22, 4) || '-' || substr(id, 26, 12)
        ELSE substr(kind, instr(kind, ':') + 1)
    END AS thread
    FROM tenant_objects
    WHERE kind IN ('aitp.desk', 'responses.deleted')
       OR kind GLOB 'threads.notes:*' OR kind GLOB 'threads.attached:*';
UPDATE tenant_objects SET thread_no = (
    SELECT t.no FROM beside_threads b JOIN thread_threads t ON t.id = b.thread AND t.tenant = b.tenant
    WHERE b.no = tenant_objects.no)
WHERE no IN (SELECT no FROM beside_threads);
-- What a thread has left behind that was deleted before.
DELETE FROM tenant_objects WHERE thread_no IS NULL AND no IN (SELECT no FROM beside_threads);
DROP TABLE beside_threads;

-- What a thread's messages bring is counted by places of its log, as nanoseconds. Where it was counted until now
-- is not known: from the beginning.
UPDATE tenant_objects SET id = '1', created_at = 1 WHERE kind GLOB 'threads.attached:*' AND id = 'bytes';
