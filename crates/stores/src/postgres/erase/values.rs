//! The values of a store as samples, and the search for samples in all values.

use crate::durable::{InValues, Matcher, Samples};
use crate::postgres::blocks::Log;
use crate::postgres::check::quoted;
use crate::postgres::connection::Conn;
use crate::postgres::pages::Numbers;
use crate::postgres::rows::number;
use crate::postgres::schema::TABLES;
use crate::postgres::value::{Param, get, original, text};
use crate::value::count;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use store::{Filter, StoreError};
use timeline::{Seq, ThreadId};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

/// Pages of a table that are searched together, rows that are fetched together at most, and their bytes.
const PAGES: u64 = 64;
const ROWS: i64 = 1000;
const BYTES: i64 = 512 << 10;

/// Adds samples of the columns of a row from one on.
pub(super) fn add_columns(samples: &mut Samples, row: &Row, from: usize) -> Result<(), StoreError> {
    for (n, column) in row.columns().iter().enumerate().skip(from) {
        if *column.type_() == Type::BYTEA {
            let bytes: Option<&[u8]> = get(row, n)?;
            if let Some(bytes) = bytes {
                samples.add(bytes);
            }
        } else {
            let value: Option<String> = get(row, n)?;
            if let Some(value) = value.map(original) {
                samples.add_value(&value);
            }
        }
    }
    Ok(())
}

/// Adds samples of rows that are listed by their numbers.
pub(super) async fn add_numbered(
    samples: &mut Samples,
    conn: &Conn,
    list: &str,
    of: Param<'_>,
    one: &str,
) -> Result<(), StoreError> {
    let mut numbers = Numbers::of(conn, list, Some(of));
    while let Some(no) = numbers.next().await? {
        if let Some(row) = conn.first(one, &[(&no, Type::INT8)]).await? {
            add_columns(samples, &row, 0)?;
        }
    }
    Ok(())
}

/// Samples of everything that a thread has.
pub(super) async fn of_thread(conn: &Conn, thread: &ThreadId) -> Result<Samples, StoreError> {
    let no = number(conn, thread).await?;
    let mut samples = Samples::default();
    let with = |_, decoded: crate::block::Decoded<'_>| {
        let text = decoded.text();
        let text = text.map_err(|fault| StoreError::Damaged(fault.to_string()))?;
        samples.add_json(&text);
        Ok(ControlFlow::Continue(()))
    };
    let log = Log::Numbered(no);
    log.read(conn, Seq(1), Filter::All, Log::chunk_for(usize::MAX), with)
        .await?;
    let number: Param<'_> = (&no, Type::INT8);
    let sql = "SELECT key, title, metadata FROM thread_threads WHERE no = $1";
    if let Some(row) = conn.first(sql, std::slice::from_ref(&number)).await? {
        add_columns(&mut samples, &row, 0)?;
    }
    let sql = "SELECT token, answer FROM thread_tokens WHERE thread_no = $1 AND token > $2 ORDER BY token LIMIT 1";
    let mut after = String::new();
    while let Some(row) = conn
        .first(sql, &[number.clone(), (&after, Type::TEXT)])
        .await?
    {
        after = get(&row, 0)?;
        add_columns(&mut samples, &row, 0)?;
    }
    let list =
        "SELECT no FROM tenant_objects WHERE no > $1 AND thread_no = $3 ORDER BY no LIMIT $2";
    let one = "SELECT o.json, c.content FROM tenant_objects o LEFT JOIN tenant_contents c ON c.no = o.content_no
               WHERE o.no = $1";
    add_numbered(&mut samples, conn, list, number, one).await?;
    Ok(samples)
}

/// A table with the columns that can have content.
struct Table {
    name: String,
    columns: Vec<(String, Kind)>,
    /// The expression for the number of a row's thread.
    thread: &'static str,
    n_pages: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Bytes,
    /// The words of the full-text index.
    Words,
}

async fn tables(conn: &Conn) -> Result<Vec<Table>, StoreError> {
    let sql = "SELECT c.relname::text, a.attname::text, a.atttypid::regtype::text,
                   pg_relation_size(c.oid) / current_setting('block_size')::bigint
               FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
               WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r' AND c.relname = ANY($1)
               ORDER BY c.relname, a.attnum";
    let names: [Param<'_>; 1] = [(&TABLES, Type::TEXT_ARRAY)];
    let mut tables: BTreeMap<String, Table> = BTreeMap::new();
    for row in conn.query(sql, &names).await? {
        let (name, column): (String, String) = (get(&row, 0)?, get(&row, 1)?);
        let kind: &str = get(&row, 2)?;
        let n_pages = count(get(&row, 3)?);
        let table = tables.entry(name.clone()).or_insert_with(|| Table {
            thread: if name == "thread_threads" {
                "no"
            } else {
                "NULL::bigint"
            },
            name,
            columns: Vec::new(),
            n_pages,
        });
        if column == "thread_no" {
            table.thread = "thread_no";
        }
        let kind = match kind {
            "text" => Kind::Text,
            "bytea" => Kind::Bytes,
            "tsvector" => Kind::Words,
            _ => continue,
        };
        table.columns.push((column, kind));
    }
    Ok(tables.into_values().collect())
}

impl Table {
    /// The rows on some pages after a place, as many as fit.
    fn sql(&self) -> String {
        let sizes = self.columns.iter().map(|(name, kind)| match kind {
            Kind::Text | Kind::Bytes => format!("coalesce(octet_length({}), 0)", quoted(name)),
            Kind::Words => format!("coalesce(pg_column_size({}), 0)", quoted(name)),
        });
        let sizes = sizes.collect::<Vec<_>>().join(" + ");
        let values = self.columns.iter().map(|(name, kind)| match kind {
            Kind::Text | Kind::Bytes => format!(", {}", quoted(name)),
            Kind::Words => format!(", {}::text", quoted(name)),
        });
        format!(
            "SELECT at::text, of_thread{} FROM (
                 SELECT x.*, sum(size) OVER w AS total, row_number() OVER w AS nth
                 FROM (SELECT ctid AS at, {} AS of_thread, t.*, {sizes} AS size FROM {} t
                       WHERE ctid > $1::text::tid AND ctid < $2::text::tid ORDER BY ctid LIMIT {ROWS}) x
                 WINDOW w AS (ORDER BY at)) y
             WHERE nth = 1 OR total <= {BYTES} ORDER BY at",
            values.collect::<String>(),
            self.thread,
            self.name
        )
    }
}

/// Searches all values of all tables. The connection reads one snapshot.
pub(super) async fn search(conn: &Conn, samples: &Samples) -> Result<InValues, StoreError> {
    let matcher = Matcher::new(samples);
    let mut found = InValues::default();
    for table in tables(conn).await? {
        if table.columns.is_empty() {
            continue;
        }
        let sql = table.sql();
        let mut page = 0;
        while page < table.n_pages {
            let (mut after, end) = (format!("({page},0)"), format!("({},0)", page + PAGES));
            loop {
                let values: [Param<'_>; 2] = [(&after, Type::TEXT), (&end, Type::TEXT)];
                let rows = conn.query(&sql, &values).await?;
                let Some(last) = rows.last() else { break };
                after = get(last, 0)?;
                for row in &rows {
                    search_row(conn, &table, row, &matcher, &mut found).await?;
                }
            }
            page += PAGES;
        }
    }
    Ok(found)
}

async fn search_row(
    conn: &Conn,
    table: &Table,
    row: &Row,
    matcher: &Matcher,
    found: &mut InValues,
) -> Result<(), StoreError> {
    for (n, (column, kind)) in (2..).zip(&table.columns) {
        let place = format!("{}.{column}", table.name);
        if *kind == Kind::Words {
            let words: Option<&str> = get(row, n)?;
            matcher.find(words.unwrap_or_default().as_bytes(), |window, _| {
                found.index.add(window, || place.clone());
            });
            continue;
        }
        let bytes = if *kind == Kind::Text {
            let text: Option<String> = get(row, n)?;
            text.map(|text| original(text).into_bytes())
        } else {
            get::<Option<Vec<u8>>>(row, n)?
        };
        let Some(bytes) = bytes else { continue };
        let mut in_value = InValues::default();
        in_value.add(matcher, &bytes, || Ok(place.clone()))?;
        if in_value.content.is_empty() {
            continue;
        }
        let no: Option<i64> = get(row, 1)?;
        let sql = "SELECT id FROM thread_threads WHERE no = $1";
        let id = match no {
            Some(no) => conn.first(sql, &[(&no, Type::INT8)]).await?,
            None => None,
        };
        let id = id.map(|row| text(&row, 0)).transpose()?;
        let place = id.map_or(place.clone(), |id| format!("{place} of thread {id}"));
        found.add(matcher, &bytes, || Ok(place))?;
    }
    Ok(())
}
