-- The order of a tenant's list: the number of each thread's last change. No clock decides it.
ALTER TABLE thread_threads ADD COLUMN change INTEGER NOT NULL DEFAULT 0;
UPDATE thread_threads SET change = numbered.n
FROM (SELECT no, row_number() OVER (PARTITION BY tenant ORDER BY updated_at, no) AS n FROM thread_threads) AS numbered
WHERE numbered.no = thread_threads.no;
DROP INDEX thread_recent;
CREATE INDEX thread_recent ON thread_threads (tenant, change);
