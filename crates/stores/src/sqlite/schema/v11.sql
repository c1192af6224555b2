-- A block whose content was erased: the SHA-256 of the body that was written, then that of the body in its place. The
-- chain of sums has the first one.
ALTER TABLE thread_blocks ADD COLUMN erased BLOB CHECK (erased IS NULL OR octet_length(erased) = 64);
CREATE INDEX thread_blocks_erased ON thread_blocks (thread_no, first) WHERE erased IS NOT NULL;
