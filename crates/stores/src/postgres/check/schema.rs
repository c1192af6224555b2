//! Compares the tables, indexes, constraints and views with those of this version, which are made as temporary ones.

use super::{Scratch, texts};
use crate::durable::{Remedy, StoreFault};
use store::StoreError;

/// The parts of a schema. `{schema}` is its number.
const PARTS: &str = "
    SELECT format('column %s of %s: %s %s %s %s %s', a.attname, c.relname, format_type(a.atttypid, a.atttypmod),
                  a.attnotnull, a.attidentity, a.attgenerated, coalesce(pg_get_expr(d.adbin, d.adrelid), ''))
    FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
    WHERE c.relnamespace = {schema} AND c.relkind = 'r' AND c.relname <> 'schema_version'
    UNION ALL
    SELECT format('index %s of %s: %s', i.relname, c.relname, pg_get_indexdef(x.indexrelid, 0, true))
    FROM pg_class c JOIN pg_index x ON x.indrelid = c.oid AND x.indisvalid JOIN pg_class i ON i.oid = x.indexrelid
    WHERE c.relnamespace = {schema} AND c.relkind = 'r' AND c.relname <> 'schema_version'
    UNION ALL
    SELECT format('constraint %s of %s: %s', k.conname, c.relname, pg_get_constraintdef(k.oid, true))
    FROM pg_class c JOIN pg_constraint k ON k.conrelid = c.oid AND k.convalidated AND k.contype <> 'n'
    WHERE c.relnamespace = {schema} AND c.relkind = 'r' AND c.relname <> 'schema_version'
    UNION ALL
    SELECT format('trigger %s of %s: ', t.tgname, c.relname)
    FROM pg_class c JOIN pg_trigger t ON t.tgrelid = c.oid AND NOT t.tgisinternal WHERE c.relnamespace = {schema}
    UNION ALL
    SELECT format('view %s: %s', c.relname, pg_get_viewdef(c.oid, true))
    FROM pg_class c WHERE c.relnamespace = {schema} AND c.relkind = 'v'
    ORDER BY 1";

/// The differences of the schema from that of this version. From then on the connection has empty temporary tables.
pub(super) async fn differences(scratch: &Scratch) -> Result<Vec<StoreFault>, StoreError> {
    scratch.begin().await?;
    let parts = PARTS.replace("{schema}", "current_schema()::regnamespace");
    let ours = texts(&scratch.conn, &parts).await?;
    scratch.make_tables().await?;
    let parts = PARTS.replace("{schema}", "pg_my_temp_schema()");
    let expected = texts(&scratch.conn, &parts).await?;
    scratch.use_tables().await?;
    let name = |part: &str| part.split(':').next().unwrap_or_default().to_owned();
    let others = ours.iter().filter(|it| !expected.contains(it));
    let others = others.map(|it| format!("the schema has another {}", name(it)));
    let missing = expected.iter().filter(|it| !ours.contains(it));
    let missing = missing.map(|it| format!("the schema lacks the {}", name(it)));
    let all = others.chain(missing);
    Ok(all
        .map(|what| StoreFault::of_store(what, Remedy::Restore))
        .collect())
}
