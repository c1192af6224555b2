-- The threads in which something waits for a person, or may. `calls` is the event that left calls open, `asks` the
-- first event that may open a request of AITP, and `asked` the position of the last one. It can be written anew from
-- the log, and is when an older store is brought up to date.
CREATE TABLE thread_waits (
    thread_no   INTEGER PRIMARY KEY REFERENCES thread_threads (no),
    tenant      TEXT NOT NULL,
    calls       INTEGER,
    asks        INTEGER,
    asked       INTEGER,
    number      INTEGER GENERATED ALWAYS AS (min(coalesce(calls, asks), coalesce(asks, calls))) VIRTUAL,
    CHECK (calls IS NOT NULL OR asks IS NOT NULL),
    CHECK ((asks IS NULL) = (asked IS NULL))
) STRICT;
CREATE INDEX thread_waits_order ON thread_waits (tenant, number);
