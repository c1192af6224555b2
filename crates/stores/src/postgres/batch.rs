//! The rows of a batch of appends, and the statements that write them.

use super::columns::{
    Ask, Asks, ChangedContext, ChangedContexts, ChangedExecution, ChangedExecutions, ChangedItem,
    ChangedItems, ChangedStep, ChangedSteps, Columns, End, Ends, InheritedCallRows, InheritedCalls,
    Known, KnownEnds, Named, NamedRows, NewBlock, NewBlocks, NewContext, NewContexts, NewExecution,
    NewExecutions, NewItem, NewItems, NewStep, NewSteps, NewThread, NewThreads, NewToken,
    NewTokens, NewWordRows, Numbered, Numbers, Removal, Removals, StartedTool, StartedTools, Usage,
    UsageRows, WrittenPart, WrittenParts,
};
use super::connection::Conn;
use super::projection::Words;
use super::value::Param;
use crate::block::MAX_EVENTS;
use futures_util::future::{join_all, join3, try_join_all};
use std::collections::BTreeMap;
use store::StorageUsage;
use tokio_postgres::Error;

/// The rows of a batch, by table.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) threads: Vec<NewThread>,
    pub(super) ends: Vec<End>,
    pub(super) blocks: Vec<NewBlock>,
    pub(super) tokens: Vec<NewToken>,
    pub(super) contexts: Vec<NewContext>,
    pub(super) changed_contexts: Vec<ChangedContext>,
    pub(super) items: Vec<NewItem>,
    pub(super) changed_items: Vec<ChangedItem>,
    pub(super) executions: Vec<NewExecution>,
    pub(super) changed_executions: Vec<ChangedExecution>,
    pub(super) steps: Vec<NewStep>,
    pub(super) changed_steps: Vec<ChangedStep>,
    pub(super) parts: Vec<WrittenPart>,
    pub(super) changed_parts: Vec<WrittenPart>,
    pub(super) started_tools: Vec<StartedTool>,
    /// Steps whose parts are deleted.
    pub(super) reset_steps: Vec<Named>,
    pub(super) removed_steps: Vec<Named>,
    pub(super) removed_items: Vec<Named>,
    pub(super) removals: Vec<Removal>,
    /// Threads whose title is no longer searched.
    pub(super) untitled: Vec<i64>,
    pub(super) words: Vec<Words>,
    pub(super) asks: Vec<Ask>,
    /// Threads whose calls wait no longer, unless they have new ones.
    pub(super) no_calls: Vec<i64>,
    /// Threads whose last execution ended, and may have left calls open.
    pub(super) ended: Vec<i64>,
    pub(super) inherited: Vec<InheritedCalls>,
    /// Threads that were not looked at before, and where their logs must end.
    pub(super) known: Vec<Known>,
    /// The storage that tenants use more than before.
    pub(super) usage: BTreeMap<String, StorageUsage>,
}

// The statements have the number of an event as that of its block and 20 bits.
const _: () = assert!(MAX_EVENTS == 1 << 20);

/// Locks threads, and fails with everything behind it if the log of one does not end where it was last.
const KNOWN: &str = "SELECT CASE WHEN count(*) = cardinality($1::bigint[]) THEN 1
        ELSE ('loomline: a thread has changed, so its append is looked at again, ' || count(*))::integer END
    FROM (SELECT t.no FROM unnest($1, $2::bigint[], $3::bigint[], $4::bigint[], $5::bytea[]) r (no, epoch, tail, owner, sum)
          JOIN thread_threads t ON t.no = r.no AND t.epoch = r.epoch AND t.head_seq = r.tail AND t.sum = r.sum
              AND t.owner IS NOT DISTINCT FROM r.owner
          ORDER BY t.no FOR NO KEY UPDATE OF t) found";

const STEP_KEY: &str = "LATERAL (SELECT k.execution_seq, k.iteration FROM thread_steps k
    WHERE k.thread_no = r.thread_no AND k.id = r.step_id
    ORDER BY k.execution_seq DESC, k.iteration DESC LIMIT 1) k";

const THREADS: &str = "INSERT INTO thread_threads
        (no, id, tenant, key, status, title, metadata, fork_no, fork_seq, created_at, updated_at, head_seq, bytes,
         epoch, owner, sum, change)
    SELECT r.*, nextval('thread_changes')
    FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::bigint[],
                $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[], $14::bigint[],
                $15::bigint[], $16::bytea[]) r";

const ENDS: &str = "UPDATE thread_threads t SET
        status = coalesce(r.status, t.status),
        title = CASE WHEN r.sets_title THEN r.title ELSE t.title END,
        metadata = CASE WHEN r.sets_metadata THEN r.metadata ELSE t.metadata END,
        updated_at = coalesce(r.updated_at, t.updated_at), head_seq = r.head_seq, bytes = t.bytes + r.bytes,
        epoch = r.epoch, owner = r.owner, sum = r.sum, change = nextval('thread_changes')
    FROM unnest($1::bigint[], $2::text[], $3::boolean[], $4::text[], $5::boolean[], $6::text[], $7::bigint[],
                $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bytea[])
        r (no, status, sets_title, title, sets_metadata, metadata, updated_at, head_seq, bytes, epoch, owner, sum)
    WHERE t.no = r.no";

const BLOCKS: &str = "INSERT INTO thread_blocks (thread_no, first, n, epoch, facts, sum, body)
    SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bytea[], $7::bytea[])";

const TOKENS: &str = "INSERT INTO thread_tokens (thread_no, token, answer, seq)
    SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[])";

const CONTEXTS: &str = "INSERT INTO thread_contexts
        (thread_no, id, key, status, block, content_offset, content_length, created_at, updated_at)
    SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[], $4::smallint[], $5::bigint[], $6::bigint[], $7::bigint[],
                         $8::bigint[], $9::bigint[])";

const CHANGED_CONTEXTS: &str =
    "UPDATE thread_contexts c SET status = r.status, updated_at = r.updated_at
    FROM unnest($1::bigint[], $2::smallint[], $3::bigint[]) r (thread_no, status, updated_at)
    WHERE c.thread_no = r.thread_no";

const ITEMS: &str = "INSERT INTO thread_items
        (thread_no, seq, context_no, id, type, role, status, channel, execution_seq, has_run, waiting, place,
         answered_seq, block, content_offset, content_length, created_at, updated_at)
    SELECT r.thread_no, r.seq, r.thread_no, r.id, r.type, r.role, r.status, r.channel,
        CASE WHEN r.execution_id IS NOT NULL THEN coalesce(r.execution_seq, (
            SELECT x.seq FROM thread_executions x WHERE x.thread_no = r.thread_no AND x.id = r.execution_id
            ORDER BY x.seq DESC LIMIT 1), 0) END,
        r.has_run, r.waiting, r.place, r.answered_seq, r.block, r.content_offset, r.content_length, r.created_at,
        r.updated_at
    FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::smallint[], $5::smallint[], $6::smallint[], $7::text[],
                $8::text[], $9::bigint[], $10::boolean[], $11::boolean[], $12::bigint[], $13::bigint[], $14::bigint[],
                $15::bigint[], $16::bigint[], $17::bigint[], $18::bigint[])
        r (thread_no, seq, id, type, role, status, channel, execution_id, execution_seq, has_run, waiting, place,
           answered_seq, block, content_offset, content_length, created_at, updated_at)";

const CHANGED_ITEMS: &str = "UPDATE thread_items i SET
        status = coalesce(r.status, i.status), updated_at = coalesce(r.updated_at, i.updated_at),
        place = CASE WHEN i.waiting AND r.started IS NOT NULL THEN r.started ELSE i.place END,
        answered_seq = CASE WHEN NOT i.waiting AND NOT i.has_run AND i.execution_seq IS NULL
                       THEN coalesce(i.answered_seq, r.started) ELSE i.answered_seq END,
        waiting = i.waiting AND r.started IS NULL
    FROM unnest($1::bigint[], $2::text[], $3::smallint[], $4::bigint[], $5::bigint[])
        r (thread_no, id, status, updated_at, started)
    WHERE i.thread_no = r.thread_no AND i.id = r.id";

const EXECUTIONS: &str = "INSERT INTO thread_executions
        (thread_no, seq, context_no, id, trigger_seq, reaction_seq, workflow_run_id, status, agent, handoffs,
         interruption_reason, interruption_detail, end_seq, created_at, updated_at)
    SELECT r.thread_no, r.seq, r.thread_no, r.id,
        (SELECT i.seq FROM thread_items i WHERE i.thread_no = r.thread_no AND i.id = r.trigger_id),
        (SELECT i.seq FROM thread_items i WHERE i.thread_no = r.thread_no AND i.id = r.reaction_id),
        r.workflow_run_id, r.status, r.agent, r.handoffs, r.interruption_reason, r.interruption_detail, r.end_seq,
        r.created_at, r.updated_at
    FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::text[], $7::smallint[], $8::text[],
                $9::bigint[], $10::text[], $11::text[], $12::bigint[], $13::bigint[], $14::bigint[])
        r (thread_no, seq, id, trigger_id, reaction_id, workflow_run_id, status, agent, handoffs,
           interruption_reason, interruption_detail, end_seq, created_at, updated_at)";

const CHANGED_EXECUTIONS: &str = "UPDATE thread_executions x SET
        status = coalesce(r.status, x.status), updated_at = coalesce(r.updated_at, x.updated_at),
        interruption_reason = coalesce(r.interruption_reason, x.interruption_reason),
        interruption_detail = coalesce(r.interruption_detail, x.interruption_detail),
        end_seq = coalesce(r.end_seq, x.end_seq)
    FROM unnest($1::bigint[], $2::text[], $3::smallint[], $4::bigint[], $5::text[], $6::text[], $7::bigint[])
        r (thread_no, id, status, updated_at, interruption_reason, interruption_detail, end_seq),
        LATERAL (SELECT k.seq FROM thread_executions k WHERE k.thread_no = r.thread_no AND k.id = r.id
                 ORDER BY k.seq DESC LIMIT 1) k
    WHERE x.thread_no = r.thread_no AND x.seq = k.seq";

const STEPS: &str = "INSERT INTO thread_steps
        (thread_no, execution_seq, iteration, seq, id, event_seq, status, input_tokens, output_tokens, asks,
         created_at, updated_at)
    SELECT r.thread_no,
        (SELECT x.seq FROM thread_executions x WHERE x.thread_no = r.thread_no AND x.id = r.execution_id
         ORDER BY x.seq DESC LIMIT 1),
        r.iteration, r.seq, r.id,
        (SELECT i.seq FROM thread_items i WHERE i.thread_no = r.thread_no AND i.id = r.event_id),
        r.status, 0, 0, false, r.created_at, r.updated_at
    FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::bigint[], $5::text[], $6::text[], $7::smallint[],
                $8::bigint[], $9::bigint[])
        r (thread_no, execution_id, iteration, seq, id, event_id, status, created_at, updated_at)";

const CHANGED_STEPS: &str = "UPDATE thread_steps s SET
        input_tokens = least(s.input_tokens + r.input_tokens, 1::bigint << 60),
        output_tokens = least(s.output_tokens + r.output_tokens, 1::bigint << 60),
        answer_seq = coalesce(r.answer_seq, s.answer_seq), answer_at = coalesce(r.answer_at, s.answer_at),
        answer_block = CASE WHEN r.answer_seq IS NOT NULL THEN r.answer_block ELSE s.answer_block END,
        answer_offset = CASE WHEN r.answer_seq IS NOT NULL THEN r.answer_offset ELSE s.answer_offset END,
        answer_length = CASE WHEN r.answer_seq IS NOT NULL THEN r.answer_length ELSE s.answer_length END,
        status = coalesce(r.status, s.status), updated_at = coalesce(r.updated_at, s.updated_at),
        end_seq = coalesce(r.end_seq, s.end_seq),
        end_block = CASE WHEN r.status IS NOT NULL THEN r.end_block ELSE s.end_block END,
        calls_offset = CASE WHEN r.status IS NOT NULL THEN r.calls_offset ELSE s.calls_offset END,
        calls_length = CASE WHEN r.status IS NOT NULL THEN r.calls_length ELSE s.calls_length END,
        results_offset = CASE WHEN r.status IS NOT NULL THEN r.results_offset ELSE s.results_offset END,
        results_length = CASE WHEN r.status IS NOT NULL THEN r.results_length ELSE s.results_length END,
        open_offset = CASE WHEN r.status IS NOT NULL THEN r.open_offset ELSE s.open_offset END,
        open_length = CASE WHEN r.status IS NOT NULL THEN r.open_length ELSE s.open_length END,
        asks = CASE WHEN r.status IS NOT NULL THEN r.asks ELSE s.asks END,
        continue_loop = CASE WHEN r.status IS NOT NULL THEN r.continue_loop ELSE s.continue_loop END,
        error_text = CASE WHEN r.status IS NOT NULL THEN r.error_text ELSE s.error_text END
    FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[],
                $8::bigint[], $9::bigint[], $10::smallint[], $11::bigint[], $12::bigint[], $13::bigint[], $14::bigint[],
                $15::bigint[], $16::bigint[], $17::bigint[], $18::bigint[], $19::bigint[], $20::boolean[],
                $21::boolean[], $22::text[])
        r (thread_no, step_id, input_tokens, output_tokens, answer_seq, answer_at, answer_block, answer_offset,
           answer_length, status, updated_at, end_seq, end_block, calls_offset, calls_length, results_offset,
           results_length, open_offset, open_length, asks, continue_loop, error_text),
        {STEP_KEY}
    WHERE s.thread_no = r.thread_no AND s.execution_seq = k.execution_seq AND s.iteration = k.iteration";

const PART_ROWS: &str = "unnest($1::bigint[], $2::text[], $3::bigint[], $4::bigint[], $5::text[], $6::text[], $7::bigint[],
                $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[])
        r (thread_no, step_id, idx, seq, type, call_id, block, part_offset, part_length, created_at, updated_at)";

const PARTS: &str = "INSERT INTO thread_parts
        (thread_no, execution_seq, iteration, idx, seq, type, call_id, block, part_offset, part_length, created_at,
         updated_at)
    SELECT r.thread_no, k.execution_seq, k.iteration, r.idx, r.seq, r.type, r.call_id, r.block, r.part_offset,
        r.part_length, r.created_at, r.updated_at
    FROM {PART_ROWS} LEFT JOIN {STEP_KEY} ON true";

/// The words of the content that parts have no longer.
const CHANGED_PART_WORDS: &str = "DELETE FROM thread_words w USING {PART_ROWS}, {STEP_KEY}, thread_parts p
    WHERE p.thread_no = r.thread_no AND p.execution_seq = k.execution_seq AND p.iteration = k.iteration AND p.idx = r.idx
        AND w.thread_no = p.thread_no AND w.seq = p.seq";

const CHANGED_PARTS: &str = "UPDATE thread_parts p SET
        seq = r.seq, type = r.type, call_id = r.call_id, block = r.block, part_offset = r.part_offset,
        part_length = r.part_length, updated_at = r.updated_at
    FROM {PART_ROWS}, {STEP_KEY}
    WHERE p.thread_no = r.thread_no AND p.execution_seq = k.execution_seq AND p.iteration = k.iteration AND p.idx = r.idx";

const STARTED_TOOLS: &str = "UPDATE thread_parts p SET started_at = r.started_at
    FROM unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[]) r (thread_no, step_id, call_id, started_at), {STEP_KEY}
    WHERE p.thread_no = r.thread_no AND p.execution_seq = k.execution_seq AND p.iteration = k.iteration
        AND p.call_id = r.call_id";

const STEP_WORDS: &str = "DELETE FROM thread_words w
    USING unnest($1::bigint[], $2::text[]) r (thread_no, step_id), {STEP_KEY}, thread_parts p
    WHERE p.thread_no = r.thread_no AND p.execution_seq = k.execution_seq AND p.iteration = k.iteration
        AND w.thread_no = p.thread_no AND w.seq = p.seq";

const RESET_STEPS: &str = "DELETE FROM thread_parts p
    USING unnest($1::bigint[], $2::text[]) r (thread_no, step_id), {STEP_KEY}
    WHERE p.thread_no = r.thread_no AND p.execution_seq = k.execution_seq AND p.iteration = k.iteration";

const ITEM_WORDS: &str = "DELETE FROM thread_words w
    USING unnest($1::bigint[], $2::text[]) r (thread_no, id), thread_items i
    WHERE i.thread_no = r.thread_no AND i.id = r.id AND w.thread_no = i.thread_no AND w.seq = i.seq";

const TITLE_WORDS: &str = "DELETE FROM thread_words w USING unnest($1::bigint[]) r (no) WHERE w.thread_no = r.no AND w.seq = 0";

const REMOVALS: &str = "INSERT INTO thread_removals (thread_no, target, seq)
    SELECT * FROM unnest($1::bigint[], $2::text[], $3::bigint[]) ON CONFLICT DO NOTHING";

const WORDS: &str = "INSERT INTO thread_words
        (thread_no, seq, number, role, is_part, block, text_offset, text_length, words)
    SELECT r.thread_no, r.seq, coalesce(r.title, (b.id << 20) + r.seq - b.first), r.role, r.is_part, r.block,
        r.text_offset, r.text_length, array_to_tsvector(string_to_array(r.words, ' '))
    FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::smallint[], $5::boolean[], $6::bigint[], $7::bigint[],
                $8::bigint[], $9::text[])
        r (thread_no, seq, title, role, is_part, block, text_offset, text_length, words)
        LEFT JOIN thread_blocks b ON b.thread_no = r.thread_no AND b.first = r.block";

const ASKS: &str = "INSERT INTO thread_waits AS w (thread_no, tenant, asks, asked)
    SELECT r.thread_no, r.tenant, (b.id << 20) + r.first - b.first, r.last
    FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::bigint[]) r (thread_no, tenant, first, last),
        LATERAL (SELECT b.id, b.first FROM thread_blocks b WHERE b.thread_no = r.thread_no AND b.first <= r.first
                 ORDER BY b.first DESC LIMIT 1) b
    ON CONFLICT (thread_no) DO UPDATE SET
        asks = least(w.asks, excluded.asks), asked = greatest(w.asked, excluded.asked)";

/// Threads whose calls wait no longer, whatever else waits there. A row without anything that waits goes.
const NO_ASKS_OR_CALLS: &str = "DELETE FROM thread_waits w USING unnest($1::bigint[]) r (no)
    WHERE w.thread_no = r.no AND w.asks IS NULL";

const NO_CALLS: &str =
    "UPDATE thread_waits w SET calls = NULL, calls_at = NULL FROM unnest($1::bigint[]) r (no)
    WHERE w.thread_no = r.no AND w.calls IS NOT NULL";

/// The calls that the last executions have left, unless a message was recorded since they began.
const ENDED: &str = "INSERT INTO thread_waits (thread_no, tenant, calls, calls_at)
    SELECT t.no, t.tenant, (b.id << 20) + coalesce(x.end_seq, 1) - b.first, x.updated_at
    FROM unnest($1::bigint[]) r (no) JOIN thread_threads t ON t.no = r.no,
        LATERAL (SELECT x.seq, x.status, x.end_seq, x.updated_at FROM thread_executions x WHERE x.thread_no = r.no
                 ORDER BY x.seq DESC LIMIT 1) x,
        LATERAL (SELECT s.asks FROM thread_steps s WHERE s.thread_no = r.no AND s.execution_seq = x.seq
                 ORDER BY s.iteration DESC LIMIT 1) s,
        LATERAL (SELECT b.id, b.first FROM thread_blocks b
                 WHERE b.thread_no = r.no AND b.first <= coalesce(x.end_seq, 1) ORDER BY b.first DESC LIMIT 1) b
    WHERE x.status = 1 AND s.asks AND NOT EXISTS (
        SELECT 1 FROM thread_items i WHERE i.thread_no = r.no AND NOT i.has_run AND i.execution_seq IS NULL
            AND i.type = 0 AND i.seq > x.seq)
    ON CONFLICT (thread_no) DO UPDATE SET calls = excluded.calls, calls_at = excluded.calls_at";

const INHERITED: &str = "INSERT INTO thread_waits (thread_no, tenant, calls, calls_at)
    SELECT r.thread_no, r.tenant, b.id << 20, r.at
    FROM unnest($1::bigint[], $2::text[], $3::bigint[]) r (thread_no, tenant, at)
        JOIN thread_blocks b ON b.thread_no = r.thread_no AND b.first = 1
    ON CONFLICT (thread_no) DO UPDATE SET calls = excluded.calls, calls_at = excluded.calls_at";

pub(super) const USAGE: &str = "INSERT INTO tenant_usage AS u (tenant, shard, threads, bytes, files)
    SELECT * FROM unnest($1::text[], $2::smallint[], $3::bigint[], $4::bigint[], $5::bigint[])
    ON CONFLICT (tenant, shard) DO UPDATE SET
        threads = u.threads + excluded.threads, bytes = u.bytes + excluded.bytes, files = u.files + excluded.files";

/// A statement for all rows of one kind.
struct Statement {
    sql: String,
    rows: Box<dyn Columns>,
}

impl Batch {
    pub(super) fn is_empty(&self) -> bool {
        self.threads.is_empty() && self.ends.is_empty()
    }

    /// The statements in their order: rows that others refer to come first, and deletions precede what is written in
    /// their place.
    fn statements(self, shard: i16) -> Vec<Statement> {
        let mut found = Vec::new();
        let mut add = |sql: &str, rows: Option<Box<dyn Columns>>| {
            let sql = sql
                .replace("{STEP_KEY}", STEP_KEY)
                .replace("{PART_ROWS}", PART_ROWS);
            found.extend(rows.map(|rows| Statement { sql, rows }));
        };
        let numbers = |of: &[i64]| some::<Numbers, _>(of.iter().map(|no| Numbered { no: *no }));
        let named = |of: &[Named]| some::<NamedRows, _>(of.iter().cloned());
        let changed_parts = some::<WrittenParts, _>(self.changed_parts.iter().cloned());
        add(KNOWN, some::<KnownEnds, _>(self.known));
        add(THREADS, some::<NewThreads, _>(self.threads));
        add(ENDS, some::<Ends, _>(self.ends));
        add(BLOCKS, some::<NewBlocks, _>(self.blocks));
        add(TOKENS, some::<NewTokens, _>(self.tokens));
        add(CONTEXTS, some::<NewContexts, _>(self.contexts));
        add(
            CHANGED_CONTEXTS,
            some::<ChangedContexts, _>(self.changed_contexts),
        );
        add(ITEMS, some::<NewItems, _>(self.items));
        add(CHANGED_ITEMS, some::<ChangedItems, _>(self.changed_items));
        // Before the next execution of the thread, whatever ran ends.
        add(
            CHANGED_EXECUTIONS,
            some::<ChangedExecutions, _>(self.changed_executions),
        );
        add(EXECUTIONS, some::<NewExecutions, _>(self.executions));
        add(STEPS, some::<NewSteps, _>(self.steps));
        add(CHANGED_STEPS, some::<ChangedSteps, _>(self.changed_steps));
        add(STEP_WORDS, named(&self.reset_steps));
        add(RESET_STEPS, named(&self.reset_steps));
        add(STEP_WORDS, named(&self.removed_steps));
        add(ITEM_WORDS, named(&self.removed_items));
        add(TITLE_WORDS, numbers(&self.untitled));
        add(CHANGED_PART_WORDS, changed_parts);
        add(PARTS, some::<WrittenParts, _>(self.parts));
        add(CHANGED_PARTS, some::<WrittenParts, _>(self.changed_parts));
        add(STARTED_TOOLS, some::<StartedTools, _>(self.started_tools));
        add(REMOVALS, some::<Removals, _>(self.removals));
        add(
            WORDS,
            some::<NewWordRows, _>(self.words.into_iter().map(|it| it.row)),
        );
        add(NO_ASKS_OR_CALLS, numbers(&self.no_calls));
        add(NO_CALLS, numbers(&self.no_calls));
        add(ASKS, some::<Asks, _>(self.asks));
        add(ENDED, numbers(&self.ended));
        add(INHERITED, some::<InheritedCallRows, _>(self.inherited));
        add(USAGE, some::<UsageRows, _>(usage_rows(self.usage, shard)));
        found
    }

    /// Sends all statements and the commit at once, after the start of the transaction if there is none yet.
    pub(super) async fn commit(self, conn: &Conn, shard: i16) -> Result<(), Error> {
        self.send(conn, shard, true).await
    }

    /// Sends all statements in an open transaction. Nothing is counted as usage.
    pub(super) async fn write(self, conn: &Conn) -> Result<(), Error> {
        self.send(conn, 0, false).await
    }

    /// The first error counts: those after it follow from it.
    async fn send(self, conn: &Conn, shard: i16, commits: bool) -> Result<(), Error> {
        let begins = !self.known.is_empty();
        let statements = self.statements(shard);
        let values: Vec<Vec<Param<'_>>> = statements.iter().map(|it| it.rows.params()).collect();
        let prepare = statements.iter().zip(&values);
        let prepare = prepare.map(|(statement, values)| conn.prepare(&statement.sql, values));
        try_join_all(prepare).await?;
        let sent = statements.iter().zip(&values);
        // They are polled in order, and each is sent when it is polled first.
        let sent = join_all(sent.map(|(statement, values)| conn.rows(&statement.sql, values)));
        let begin = async {
            if begins {
                return conn.begin().await;
            }
            Ok(())
        };
        let commit = async {
            if commits {
                return conn.batch("COMMIT").await;
            }
            Ok(())
        };
        let (start, done, committed) = join3(begin, sent, commit).await;
        start?;
        for rows in done {
            rows?;
        }
        committed
    }
}

/// The rows of usage, in the order in which all writers take them.
pub(super) fn usage_rows(
    usage: BTreeMap<String, StorageUsage>,
    shard: i16,
) -> impl Iterator<Item = Usage> {
    use crate::value::int;
    usage.into_iter().map(move |(tenant, more)| Usage {
        tenant,
        shard,
        threads: int(more.threads),
        bytes: int(more.bytes),
        files: int(more.files),
    })
}

fn some<C, R>(rows: impl IntoIterator<Item = R>) -> Option<Box<dyn Columns>>
where
    C: Columns + FromIterator<R> + 'static,
{
    let mut rows = rows.into_iter().peekable();
    rows.peek()
        .is_some()
        .then(|| -> Box<dyn Columns> { Box::new(rows.collect::<C>()) })
}
