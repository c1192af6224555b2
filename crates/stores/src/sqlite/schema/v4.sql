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
