-- What each tenant stores: the number of its threads, the bytes of its events, objects and contents, and the number
-- of its objects that have a content. Triggers keep it, in the transaction of each change.
CREATE TABLE tenant_usage (
    tenant      TEXT PRIMARY KEY,
    threads     INTEGER NOT NULL,
    bytes       INTEGER NOT NULL,
    files       INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO tenant_usage (tenant, threads, bytes, files)
    SELECT tenant, sum(threads), sum(bytes), sum(files) FROM (
        SELECT tenant, 1 AS threads, bytes, 0 AS files FROM thread_threads
        UNION ALL
        SELECT tenant, 0, octet_length(content), 0 FROM tenant_contents
        UNION ALL
        SELECT tenant, 0, octet_length(json), content_no IS NOT NULL FROM tenant_objects)
    GROUP BY tenant;

CREATE TRIGGER tenant_usage_thread_made AFTER INSERT ON thread_threads BEGIN
    INSERT INTO tenant_usage (tenant, threads, bytes, files) VALUES (new.tenant, 1, new.bytes, 0)
        ON CONFLICT (tenant) DO UPDATE SET threads = threads + 1, bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER tenant_usage_thread_grown AFTER UPDATE OF bytes ON thread_threads WHEN new.bytes <> old.bytes BEGIN
    UPDATE tenant_usage SET bytes = bytes + new.bytes - old.bytes WHERE tenant = new.tenant;
END;
CREATE TRIGGER tenant_usage_thread_deleted AFTER DELETE ON thread_threads BEGIN
    UPDATE tenant_usage SET threads = threads - 1, bytes = bytes - old.bytes WHERE tenant = old.tenant;
END;

CREATE TRIGGER tenant_usage_content_made AFTER INSERT ON tenant_contents BEGIN
    INSERT INTO tenant_usage (tenant, threads, bytes, files) VALUES (new.tenant, 0, octet_length(new.content), 0)
        ON CONFLICT (tenant) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER tenant_usage_content_deleted AFTER DELETE ON tenant_contents BEGIN
    UPDATE tenant_usage SET bytes = bytes - octet_length(old.content) WHERE tenant = old.tenant;
END;

CREATE TRIGGER tenant_usage_object_made AFTER INSERT ON tenant_objects BEGIN
    INSERT INTO tenant_usage (tenant, threads, bytes, files)
        VALUES (new.tenant, 0, octet_length(new.json), new.content_no IS NOT NULL)
        ON CONFLICT (tenant) DO UPDATE SET bytes = bytes + excluded.bytes, files = files + excluded.files;
END;
CREATE TRIGGER tenant_usage_object_changed AFTER UPDATE OF json, content_no ON tenant_objects BEGIN
    UPDATE tenant_usage SET
        bytes = bytes + octet_length(new.json) - octet_length(old.json),
        files = files + (new.content_no IS NOT NULL) - (old.content_no IS NOT NULL)
    WHERE tenant = new.tenant;
END;
CREATE TRIGGER tenant_usage_object_deleted AFTER DELETE ON tenant_objects BEGIN
    UPDATE tenant_usage SET
        bytes = bytes - octet_length(old.json),
        files = files - (old.content_no IS NOT NULL)
    WHERE tenant = old.tenant;
END;
