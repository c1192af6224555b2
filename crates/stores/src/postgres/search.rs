//! Finds threads by words, and what lists show of threads.

use super::connection::Conn;
use super::rows::{AGENT, Found, threads};
use super::value::{Param, get, optional_text, stored, text};
use super::words::{TITLES, query, tenant_word, thread_word};
use crate::block::Coded as _;
use crate::value::{count, int};
use std::collections::BTreeMap;
use store::search::{
    FoundThread, FoundThreads, HITS_PER_THREAD, PREVIEW_CHARS, Search, SearchHit, ThreadPreview,
    text_of_content, text_of_part,
};
use store::{KeyPattern, StoreError, TenantId};
use timeline::{Role, Seq, ThreadId};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

/// Maximum number of hits that are examined for one page.
const EXAMINED: usize = 10_000;

/// Hits that are fetched together.
const FETCHED: i64 = 64;

/// Maximum number of threads that a query names. If the caller may see more threads than that, all hits of the tenant
/// are examined.
const NAMED: i64 = 500;

/// Maximum size of a text that is previewed, in bytes of JSON.
const PREVIEWED: i64 = 256 << 10;

/// Texts that have words, with the JSON that has each. Only those of the page are read.
const TEXTS: &str = "SELECT w.thread_no, w.seq, w.number, w.role, w.is_part,
        CASE WHEN w.seq = 0 THEN t.title ELSE convert_from(
            substring(b.body FROM w.text_offset::int + 1 FOR w.text_length::int), 'UTF8') END
    FROM (SELECT thread_no, seq, number, role, is_part, block, text_offset, text_length FROM thread_words
          WHERE words @@ $1::text::tsquery AND number < $2 AND number >= $3 ORDER BY number DESC LIMIT $4) w
    JOIN thread_threads t ON t.no = w.thread_no
    LEFT JOIN thread_blocks b ON b.thread_no = w.thread_no AND b.first = w.block
    ORDER BY w.number DESC";

/// A text that has all words.
struct Hit {
    no: i64,
    seq: Option<Seq>,
    number: i64,
    role: Option<Role>,
    text: String,
}

fn hit(row: &Row) -> Result<Hit, StoreError> {
    let seq: i64 = get(row, 1)?;
    let (role, is_part): (Option<i16>, bool) = (get(row, 3)?, get(row, 4)?);
    // A title is a text of a client, everything else the JSON of a block.
    let found = if seq == 0 {
        optional_text(row, 5)?
    } else {
        let json: Option<&str> = get(row, 5)?;
        json.and_then(if is_part {
            text_of_part
        } else {
            text_of_content
        })
    };
    let role = role.and_then(|role| Role::of_code(u8::try_from(role).ok()?));
    Ok(Hit {
        no: get(row, 0)?,
        seq: (seq > 0).then(|| Seq(count(seq))),
        number: get(row, 2)?,
        role,
        text: found.unwrap_or_default(),
    })
}

/// A page of threads that have the words. The connection reads one snapshot.
pub(super) async fn search(
    conn: &Conn,
    tenant: &TenantId,
    search: &Search,
) -> Result<FoundThreads, StoreError> {
    if search.words.is_empty() || search.limit == 0 {
        return Ok(FoundThreads::default());
    }
    let Some(scope) = scope(conn, tenant, search.keys.as_deref()).await? else {
        return Ok(FoundThreads::default());
    };
    let page = Page {
        conn,
        tenant,
        search,
        words: query(&search.words),
    };
    page.read(&scope).await
}

/// Where to search: in the tenant, or in its threads with these keys if they are few. `None` if there are none.
async fn scope(
    conn: &Conn,
    tenant: &TenantId,
    keys: Option<&[KeyPattern]>,
) -> Result<Option<String>, StoreError> {
    let whole = Ok(Some(format!("'{}'", tenant_word(tenant))));
    let Some(keys) = keys else {
        return whole;
    };
    let stored_tenant = stored(tenant.as_str());
    let mut named = Vec::new();
    for pattern in keys {
        let (sql, key) = match pattern {
            KeyPattern::Key(key) => (
                "SELECT no FROM thread_threads WHERE tenant = $1 AND key = $2 LIMIT $3",
                key,
            ),
            KeyPattern::Prefix(prefix) => (
                "SELECT no FROM thread_threads WHERE tenant = $1 AND key >= $2 AND starts_with(key, $2) LIMIT $3",
                prefix,
            ),
        };
        let key = stored(key);
        let limit = NAMED + 1;
        let values: [Param<'_>; 3] = [
            (&stored_tenant, Type::TEXT),
            (&key, Type::TEXT),
            (&limit, Type::INT8),
        ];
        for row in conn.query(sql, &values).await? {
            named.push(format!("'{}'", thread_word(get(&row, 0)?)));
        }
        if int(named.len() as u64) > NAMED {
            return whole;
        }
    }
    Ok((!named.is_empty()).then(|| format!("({})", named.join(" | "))))
}

struct Page<'a> {
    conn: &'a Conn,
    tenant: &'a TenantId,
    search: &'a Search,
    words: String,
}

impl Page<'_> {
    async fn read(&self, scope: &str) -> Result<FoundThreads, StoreError> {
        let query = format!("{scope} & {}", self.words);
        let mut after = self.search.after.map_or(i64::MAX, int);
        let (mut found, mut places) = (FoundThreads::default(), BTreeMap::new());
        let (mut last, mut n_examined) = (None, 0);
        loop {
            let hits = self.hits(&query, after, 0).await?;
            let Some(oldest) = hits.last() else {
                return Ok(found);
            };
            after = oldest.number;
            for hit in hits {
                if n_examined == EXAMINED {
                    found.next = last;
                    return Ok(found);
                }
                n_examined += 1;
                if self.search.words.are_in(&hit.text) {
                    let place = if let Some(place) = places.get(&hit.no) {
                        *place
                    } else {
                        let meant = self.meant(hit.no).await?;
                        if meant.is_some() && found.threads.len() == self.search.limit {
                            found.next = last;
                            return Ok(found);
                        }
                        let place = meant.is_some().then_some(found.threads.len());
                        found.threads.extend(meant.map(|found| FoundThread {
                            row: found.row,
                            hits: Vec::new(),
                        }));
                        places.insert(hit.no, place);
                        place
                    };
                    if let Some(thread) = place.and_then(|place| found.threads.get_mut(place))
                        && thread.hits.len() < HITS_PER_THREAD
                    {
                        thread.hits.push(SearchHit {
                            seq: hit.seq,
                            role: hit.role,
                            excerpt: self.search.words.excerpt(&hit.text),
                        });
                    }
                }
                last = Some(count(hit.number));
            }
        }
    }

    /// Texts of the index with numbers before `before` and from `from` on, newest first. The words may not be in them as
    /// they must be.
    async fn hits(&self, query: &str, before: i64, from: i64) -> Result<Vec<Hit>, StoreError> {
        let values: [Param<'_>; 4] = [
            (&query, Type::TEXT),
            (&before, Type::INT8),
            (&from, Type::INT8),
            (&FETCHED, Type::INT8),
        ];
        let rows = self.conn.query(TEXTS, &values).await?;
        rows.iter().map(hit).collect()
    }

    /// The thread with this number, if the page may have it.
    async fn meant(&self, no: i64) -> Result<Option<Found>, StoreError> {
        let Some(found) = threads(self.conn, &[no]).await?.pop() else {
            return Ok(None);
        };
        let key = found.row.thread.key.as_deref();
        let covers = |pattern: &KeyPattern| key.is_some_and(|key| pattern.covers(key));
        let keys = self.search.keys.as_ref();
        let is_meant = found.row.tenant == *self.tenant
            && keys.is_none_or(|keys| keys.iter().any(covers))
            && self.passes(&found).await?
            && !self.was_found(no).await?;
        Ok(Some(found).filter(|_| is_meant))
    }

    /// Whether the filter accepts a thread.
    async fn passes(&self, found: &Found) -> Result<bool, StoreError> {
        let filter = &self.search.filter;
        if filter.agent.is_none() && !filter.may_wait {
            return Ok(filter.accepts(&found.row.thread, None, false));
        }
        let sql = format!(
            "SELECT {AGENT}, EXISTS (SELECT 1 FROM thread_waits w WHERE w.thread_no = t.no)
             FROM thread_threads t WHERE t.no = $1"
        );
        let Some(row) = self.conn.first(&sql, &[(&found.no, Type::INT8)]).await? else {
            return Ok(false);
        };
        let agent = optional_text(&row, 0)?;
        Ok(filter.accepts(&found.row.thread, agent.as_deref(), get(&row, 1)?))
    }

    /// Whether an earlier page has the thread: it has a newer hit.
    async fn was_found(&self, no: i64) -> Result<bool, StoreError> {
        let Some(after) = self.search.after else {
            return Ok(false);
        };
        let query = format!("'{}' & {}", thread_word(no), self.words);
        let mut before = i64::MAX;
        loop {
            let hits = self.hits(&query, before, int(after)).await?;
            let Some(oldest) = hits.last() else {
                return Ok(false);
            };
            before = oldest.number;
            if hits.iter().any(|hit| self.search.words.are_in(&hit.text)) {
                return Ok(true);
            }
        }
    }
}

/// The previews of threads.
pub(super) async fn previews(
    conn: &Conn,
    ids: &[ThreadId],
) -> Result<Vec<ThreadPreview>, StoreError> {
    let sql = format!(
        "SELECT t.id, {AGENT}, (SELECT p.key FROM thread_threads p WHERE p.no = t.fork_no),
             EXISTS (SELECT 1 FROM thread_waits w WHERE w.thread_no = t.no), l.is_part, l.json
         FROM thread_threads t
         LEFT JOIN LATERAL (
             SELECT w.is_part, CASE WHEN w.text_length <= $2 THEN convert_from(
                 substring(b.body FROM w.text_offset::int + 1 FOR w.text_length::int), 'UTF8') END AS json
             FROM (SELECT * FROM thread_words WHERE thread_no = t.no AND number < $3
                   ORDER BY seq DESC LIMIT 1) w
             JOIN thread_blocks b ON b.thread_no = w.thread_no AND b.first = w.block) l ON true
         WHERE t.id = ANY($1)"
    );
    let names: Vec<_> = ids
        .iter()
        .map(|id| stored(id.as_str()).into_owned())
        .collect();
    let values: [Param<'_>; 3] = [
        (&names, Type::TEXT_ARRAY),
        (&PREVIEWED, Type::INT8),
        (&TITLES, Type::INT8),
    ];
    let mut found = BTreeMap::new();
    for row in conn.query(&sql, &values).await? {
        let is_part: Option<bool> = get(&row, 4)?;
        let json: Option<&str> = get(&row, 5)?;
        let read = if is_part == Some(true) {
            text_of_part
        } else {
            text_of_content
        };
        let last = json.and_then(read);
        let preview = ThreadPreview {
            agent: optional_text(&row, 1)?,
            forked_from: optional_text(&row, 2)?,
            last_text: last.map(|text| text.chars().take(PREVIEW_CHARS).collect()),
            may_wait: get(&row, 3)?,
        };
        found.insert(text(&row, 0)?, preview);
    }
    let previews = ids.iter().map(|id| found.get(id.as_str()).cloned());
    Ok(previews.map(Option::unwrap_or_default).collect())
}
