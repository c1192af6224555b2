//! Rows of many appends as columns: one statement for each table writes those of a whole batch.

use super::value::Param;
use tokio_postgres::types::Type;

/// Makes a row, and the columns of many such rows.
macro_rules! columns {
    ($($(#[$doc:meta])* $row:ident => $columns:ident { $($column:ident: $type:ty as $sql:ident,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub(super) struct $row { $(pub(super) $column: $type,)* }

        #[derive(Default)]
        pub(super) struct $columns { $($column: Vec<$type>,)* }

        impl FromIterator<$row> for $columns {
            fn from_iter<I: IntoIterator<Item = $row>>(rows: I) -> Self {
                let mut columns = Self::default();
                for row in rows {
                    $(columns.$column.push(row.$column);)*
                }
                columns
            }
        }

        impl Columns for $columns {
            fn params(&self) -> Vec<Param<'_>> {
                vec![$((&self.$column, Type::$sql),)*]
            }
        }
    )*};
}

/// The columns of rows, as values of a statement.
pub(super) trait Columns: Send + Sync {
    fn params(&self) -> Vec<Param<'_>>;
}

columns! {
    /// The row of a new thread.
    NewThread => NewThreads {
        no: i64 as INT8_ARRAY,
        id: String as TEXT_ARRAY,
        tenant: String as TEXT_ARRAY,
        key: Option<String> as TEXT_ARRAY,
        status: String as TEXT_ARRAY,
        title: Option<String> as TEXT_ARRAY,
        metadata: Option<String> as TEXT_ARRAY,
        fork_no: Option<i64> as INT8_ARRAY,
        fork_seq: Option<i64> as INT8_ARRAY,
        created_at: i64 as INT8_ARRAY,
        updated_at: i64 as INT8_ARRAY,
        head_seq: i64 as INT8_ARRAY,
        bytes: i64 as INT8_ARRAY,
        epoch: i64 as INT8_ARRAY,
        owner: Option<i64> as INT8_ARRAY,
        sum: Vec<u8> as BYTEA_ARRAY,
    }
    /// The new end of a thread's log.
    End => Ends {
        no: i64 as INT8_ARRAY,
        status: Option<String> as TEXT_ARRAY,
        sets_title: bool as BOOL_ARRAY,
        title: Option<String> as TEXT_ARRAY,
        sets_metadata: bool as BOOL_ARRAY,
        metadata: Option<String> as TEXT_ARRAY,
        updated_at: Option<i64> as INT8_ARRAY,
        head_seq: i64 as INT8_ARRAY,
        bytes: i64 as INT8_ARRAY,
        epoch: i64 as INT8_ARRAY,
        owner: Option<i64> as INT8_ARRAY,
        sum: Vec<u8> as BYTEA_ARRAY,
    }
    NewBlock => NewBlocks {
        thread_no: i64 as INT8_ARRAY,
        first: i64 as INT8_ARRAY,
        n: i64 as INT8_ARRAY,
        epoch: i64 as INT8_ARRAY,
        facts: i64 as INT8_ARRAY,
        sum: Vec<u8> as BYTEA_ARRAY,
        body: Vec<u8> as BYTEA_ARRAY,
    }
    NewToken => NewTokens {
        thread_no: i64 as INT8_ARRAY,
        token: String as TEXT_ARRAY,
        answer: String as TEXT_ARRAY,
        seq: i64 as INT8_ARRAY,
    }
    NewContext => NewContexts {
        thread_no: i64 as INT8_ARRAY,
        id: String as TEXT_ARRAY,
        key: Option<String> as TEXT_ARRAY,
        status: i16 as INT2_ARRAY,
        block: Option<i64> as INT8_ARRAY,
        content_offset: Option<i64> as INT8_ARRAY,
        content_length: Option<i64> as INT8_ARRAY,
        created_at: i64 as INT8_ARRAY,
        updated_at: Option<i64> as INT8_ARRAY,
    }
    ChangedContext => ChangedContexts {
        thread_no: i64 as INT8_ARRAY,
        status: i16 as INT2_ARRAY,
        updated_at: i64 as INT8_ARRAY,
    }
    NewItem => NewItems {
        thread_no: i64 as INT8_ARRAY,
        seq: i64 as INT8_ARRAY,
        id: String as TEXT_ARRAY,
        kind: i16 as INT2_ARRAY,
        role: Option<i16> as INT2_ARRAY,
        status: i16 as INT2_ARRAY,
        channel: Option<String> as TEXT_ARRAY,
        execution_id: Option<String> as TEXT_ARRAY,
        execution_seq: Option<i64> as INT8_ARRAY,
        has_run: bool as BOOL_ARRAY,
        waiting: bool as BOOL_ARRAY,
        place: Option<i64> as INT8_ARRAY,
        answered_seq: Option<i64> as INT8_ARRAY,
        block: Option<i64> as INT8_ARRAY,
        content_offset: Option<i64> as INT8_ARRAY,
        content_length: Option<i64> as INT8_ARRAY,
        created_at: i64 as INT8_ARRAY,
        updated_at: Option<i64> as INT8_ARRAY,
    }
    ChangedItem => ChangedItems {
        thread_no: i64 as INT8_ARRAY,
        id: String as TEXT_ARRAY,
        status: Option<i16> as INT2_ARRAY,
        updated_at: Option<i64> as INT8_ARRAY,
        started: Option<i64> as INT8_ARRAY,
    }
    NewExecution => NewExecutions {
        thread_no: i64 as INT8_ARRAY,
        seq: i64 as INT8_ARRAY,
        id: String as TEXT_ARRAY,
        trigger_id: String as TEXT_ARRAY,
        reaction_id: String as TEXT_ARRAY,
        workflow_run_id: Option<String> as TEXT_ARRAY,
        status: i16 as INT2_ARRAY,
        agent: Option<String> as TEXT_ARRAY,
        handoffs: i64 as INT8_ARRAY,
        interruption_reason: Option<String> as TEXT_ARRAY,
        interruption_detail: Option<String> as TEXT_ARRAY,
        end_seq: Option<i64> as INT8_ARRAY,
        created_at: i64 as INT8_ARRAY,
        updated_at: Option<i64> as INT8_ARRAY,
    }
    ChangedExecution => ChangedExecutions {
        thread_no: i64 as INT8_ARRAY,
        id: String as TEXT_ARRAY,
        status: Option<i16> as INT2_ARRAY,
        updated_at: Option<i64> as INT8_ARRAY,
        interruption_reason: Option<String> as TEXT_ARRAY,
        interruption_detail: Option<String> as TEXT_ARRAY,
        end_seq: Option<i64> as INT8_ARRAY,
    }
    NewStep => NewSteps {
        thread_no: i64 as INT8_ARRAY,
        execution_id: String as TEXT_ARRAY,
        iteration: i64 as INT8_ARRAY,
        seq: i64 as INT8_ARRAY,
        id: String as TEXT_ARRAY,
        event_id: String as TEXT_ARRAY,
        status: i16 as INT2_ARRAY,
        created_at: i64 as INT8_ARRAY,
        updated_at: Option<i64> as INT8_ARRAY,
    }
    ChangedStep => ChangedSteps {
        thread_no: i64 as INT8_ARRAY,
        id: String as TEXT_ARRAY,
        input_tokens: i64 as INT8_ARRAY,
        output_tokens: i64 as INT8_ARRAY,
        answer_seq: Option<i64> as INT8_ARRAY,
        answer_at: Option<i64> as INT8_ARRAY,
        answer_block: Option<i64> as INT8_ARRAY,
        answer_offset: Option<i64> as INT8_ARRAY,
        answer_length: Option<i64> as INT8_ARRAY,
        status: Option<i16> as INT2_ARRAY,
        updated_at: Option<i64> as INT8_ARRAY,
        end_seq: Option<i64> as INT8_ARRAY,
        end_block: Option<i64> as INT8_ARRAY,
        calls_offset: Option<i64> as INT8_ARRAY,
        calls_length: Option<i64> as INT8_ARRAY,
        results_offset: Option<i64> as INT8_ARRAY,
        results_length: Option<i64> as INT8_ARRAY,
        open_offset: Option<i64> as INT8_ARRAY,
        open_length: Option<i64> as INT8_ARRAY,
        asks: bool as BOOL_ARRAY,
        continue_loop: Option<bool> as BOOL_ARRAY,
        error_text: Option<String> as TEXT_ARRAY,
    }
    WrittenPart => WrittenParts {
        thread_no: i64 as INT8_ARRAY,
        step_id: String as TEXT_ARRAY,
        idx: i64 as INT8_ARRAY,
        seq: i64 as INT8_ARRAY,
        kind: Option<String> as TEXT_ARRAY,
        call_id: Option<String> as TEXT_ARRAY,
        block: Option<i64> as INT8_ARRAY,
        part_offset: Option<i64> as INT8_ARRAY,
        part_length: Option<i64> as INT8_ARRAY,
        created_at: i64 as INT8_ARRAY,
        updated_at: i64 as INT8_ARRAY,
    }
    StartedTool => StartedTools {
        thread_no: i64 as INT8_ARRAY,
        step_id: String as TEXT_ARRAY,
        call_id: String as TEXT_ARRAY,
        started_at: i64 as INT8_ARRAY,
    }
    /// A step or an item of a thread.
    Named => NamedRows {
        thread_no: i64 as INT8_ARRAY,
        id: String as TEXT_ARRAY,
    }
    Removal => Removals {
        thread_no: i64 as INT8_ARRAY,
        target: String as TEXT_ARRAY,
        seq: i64 as INT8_ARRAY,
    }
    /// The words of a text. `title` is the number of a title.
    NewWords => NewWordRows {
        thread_no: i64 as INT8_ARRAY,
        seq: i64 as INT8_ARRAY,
        title: Option<i64> as INT8_ARRAY,
        role: Option<i16> as INT2_ARRAY,
        is_part: bool as BOOL_ARRAY,
        block: Option<i64> as INT8_ARRAY,
        text_offset: Option<i64> as INT8_ARRAY,
        text_length: Option<i64> as INT8_ARRAY,
        words: String as TEXT_ARRAY,
    }
    /// The first and the last event of an append that may open a request.
    Ask => Asks {
        thread_no: i64 as INT8_ARRAY,
        tenant: String as TEXT_ARRAY,
        first: i64 as INT8_ARRAY,
        last: i64 as INT8_ARRAY,
    }
    /// Calls that a fork inherits: they wait from its first event on.
    InheritedCalls => InheritedCallRows {
        thread_no: i64 as INT8_ARRAY,
        tenant: String as TEXT_ARRAY,
        at: i64 as INT8_ARRAY,
    }
    Usage => UsageRows {
        tenant: String as TEXT_ARRAY,
        shard: i16 as INT2_ARRAY,
        threads: i64 as INT8_ARRAY,
        bytes: i64 as INT8_ARRAY,
        files: i64 as INT8_ARRAY,
    }
    /// Where the log of a thread must end.
    Known => KnownEnds {
        no: i64 as INT8_ARRAY,
        epoch: i64 as INT8_ARRAY,
        tail: i64 as INT8_ARRAY,
        owner: Option<i64> as INT8_ARRAY,
        sum: Vec<u8> as BYTEA_ARRAY,
    }
    /// Threads by number.
    Numbered => Numbers {
        no: i64 as INT8_ARRAY,
    }
}
