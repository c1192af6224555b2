//! The row changes of an append ([`store::rows`]) as rows of a batch.
//!
//! Rows are found by their ids in the statements, so nothing is read before it is written.

use super::batch::Batch;
use super::columns::{
    Ask, ChangedContext, ChangedExecution, ChangedItem, ChangedStep, Named, NewContext,
    NewExecution, NewItem, NewStep, NewWords, Removal, StartedTool, WrittenPart,
};
use super::value::stored;
use super::words::{TITLES, word_array};
use crate::block::{Block, ByteRanges, Coded};
use crate::value::{compacted, int, interruption, nanos};
use jiff::Timestamp;
use std::collections::BTreeMap;
use store::rows::{
    ContextRow, ExecutionChange, ExecutionRow, ItemChange, ItemRow, PartRow, RowChange, StepChange,
    StepRow, row_changes,
};
use store::search::{text_of_content, text_of_part};
use store::waits::{CallsChange, calls_wait_for_people};
use store::{NewRecord, TenantId};
use timeline::{
    Event, ExecutionId, ExecutionStatus, ItemType, OpenCall, Payload, Removed, Role, Seq,
    ThreadStatus,
};

/// The blocks of an append, and where they are.
pub(super) struct Placed<'a> {
    pub(super) no: i64,
    pub(super) tenant: &'a TenantId,
    /// The first event of each block, and the places of its values.
    blocks: Vec<(i64, &'a ByteRanges)>,
    /// The positions of executions that may be written later than the items that name them.
    executions: Option<&'a BTreeMap<String, i64>>,
}

#[derive(Clone, Copy)]
struct Place {
    block: i64,
    offset: i64,
    length: i64,
}

impl<'a> Placed<'a> {
    /// The blocks of an append behind a position.
    pub(super) fn after(no: i64, tenant: &'a TenantId, tail: Seq, blocks: &'a [Block]) -> Self {
        let mut first = tail.next().0;
        let blocks = blocks.iter().map(|block| {
            let placed = (int(first), &block.ranges);
            first += block.n as u64;
            placed
        });
        Self {
            no,
            tenant,
            blocks: blocks.collect(),
            executions: None,
        }
    }

    /// Blocks of a log with these executions.
    pub(super) fn stored(
        no: i64,
        tenant: &'a TenantId,
        blocks: &'a [(i64, ByteRanges)],
        executions: &'a BTreeMap<String, i64>,
    ) -> Self {
        Self {
            no,
            tenant,
            blocks: blocks
                .iter()
                .map(|(first, ranges)| (*first, ranges))
                .collect(),
            executions: Some(executions),
        }
    }

    fn place(&self, of: Option<&Payload>) -> Option<Place> {
        let of = of?;
        self.blocks.iter().find_map(|(block, ranges)| {
            let range = ranges.of(of)?;
            Some(Place {
                block: *block,
                offset: int(range.offset as u64),
                length: int(range.length as u64),
            })
        })
    }
}

/// A new value of a column that may have none.
pub(super) struct New(pub(super) Option<String>);

/// The changes of an append to the row of its thread.
#[derive(Default)]
pub(super) struct ThreadChange {
    pub(super) status: Option<ThreadStatus>,
    pub(super) title: Option<New>,
    pub(super) metadata: Option<New>,
    /// Whether it leaves an execution or a waiting trigger behind.
    pub(super) leaves_work: bool,
    /// Its effect on the calls that wait.
    pub(super) calls: Option<CallsChange>,
    /// Whether it has an execution.
    pub(super) has_run: bool,
}

fn code(of: impl Coded) -> i16 {
    of.code().into()
}

fn text(of: &str) -> String {
    stored(of).into_owned()
}

fn seq(of: Seq) -> i64 {
    int(of.0)
}

/// Adds the rows of an append to a batch. The row of the thread is left to the caller.
pub(super) fn project(
    batch: &mut Batch,
    placed: &Placed<'_>,
    events: &[(Seq, Timestamp, &Event)],
) -> ThreadChange {
    let changes = row_changes(events.iter().copied());
    let mut rows = Rows {
        batch,
        placed,
        executions: BTreeMap::new(),
        thread: ThreadChange::default(),
    };
    // An item names its execution, which is written after it.
    for change in &changes {
        if let RowChange::Execution(row) = change {
            rows.executions
                .insert(row.execution.id.as_str(), seq(row.seq));
        }
    }
    let mut asks: Option<(Seq, Seq)> = None;
    for change in &changes {
        if let RowChange::MayAsk(at) = change {
            asks = Some(asks.map_or((*at, *at), |(first, last)| (first.min(*at), last.max(*at))));
        } else {
            rows.change(change);
        }
    }
    if let Some((first, last)) = asks {
        rows.batch.asks.push(Ask {
            thread_no: placed.no,
            tenant: text(placed.tenant.as_str()),
            first: seq(first),
            last: seq(last),
        });
    }
    let mut change = rows.thread;
    let mut last = events.iter().rev();
    change.calls = last.find_map(|(_, _, event)| CallsChange::of(event));
    change
}

/// The events of an append behind a position.
pub(super) fn numbered(tail: Seq, records: &[NewRecord]) -> Vec<(Seq, Timestamp, &Event)> {
    let numbered = (tail.next().0..).map(Seq).zip(records);
    let numbered = numbered.map(|(seq, record)| (seq, record.at, record.event()));
    numbered.collect()
}

struct Rows<'a, 'e> {
    batch: &'a mut Batch,
    placed: &'a Placed<'a>,
    /// The positions of the append's own executions.
    executions: BTreeMap<&'e str, i64>,
    thread: ThreadChange,
}

impl<'e> Rows<'_, 'e> {
    fn named(&self, id: &str) -> Named {
        Named {
            thread_no: self.placed.no,
            id: text(id),
        }
    }

    /// The position of an execution that may not be written yet.
    fn execution_seq(&self, id: &str) -> Option<i64> {
        let own = self.executions.get(id).copied();
        own.or_else(|| self.placed.executions?.get(id).copied())
    }

    fn change(&mut self, change: &RowChange<'e>) {
        let thread_no = self.placed.no;
        match change {
            RowChange::Thread(made, status) => {
                self.thread.status = Some(*status);
                self.titled(made.title.as_deref());
                let metadata = made.metadata.as_ref().map(Payload::text);
                self.thread.metadata = Some(New(metadata.map(text)));
            }
            RowChange::ThreadStatus(to) => self.thread.status = Some(*to),
            RowChange::ThreadTitle(title) => self.title(title.as_deref()),
            RowChange::ThreadMetadata(metadata) => {
                let metadata = metadata.as_ref().map(Payload::text);
                self.thread.metadata = Some(New(metadata.map(text)));
            }
            RowChange::Context(row) => self.context(row),
            RowChange::ContextStatus(to, at) => self.batch.changed_contexts.push(ChangedContext {
                thread_no,
                status: code(*to),
                updated_at: nanos(*at),
            }),
            RowChange::Item(row) => self.item(row),
            RowChange::ItemChange(id, change) => self.item_change(id, change),
            RowChange::Execution(row) => self.execution(row),
            RowChange::ExecutionChange(id, change) => self.execution_change(id, change),
            RowChange::Step(row) => self.step(row),
            RowChange::StepChange(id, change) => self.step_change(id, change),
            RowChange::Part(row) => self.part(row, true),
            RowChange::PartContent(row) => self.part(row, false),
            RowChange::ToolStarted {
                step_id,
                call_id,
                at,
            } => self.batch.started_tools.push(StartedTool {
                thread_no,
                step_id: text(step_id),
                call_id: text(call_id),
                started_at: nanos(*at),
            }),
            RowChange::PartsDeleted(step_id) => self.parts_deleted(step_id),
            RowChange::Removed(what, at) => self.removed(what, *at),
            RowChange::Compacted(at) => self.batch.removals.push(Removal {
                thread_no,
                target: compacted(*at),
                seq: seq(*at),
            }),
            RowChange::MayAsk(_) => {}
        }
    }

    fn title(&mut self, title: Option<&str>) {
        let thread_no = self.placed.no;
        let batch = &mut *self.batch;
        batch
            .words
            .retain(|it| it.row.thread_no != thread_no || it.row.seq != 0);
        batch.untitled.push(thread_no);
        self.titled(title);
    }

    fn titled(&mut self, title: Option<&str>) {
        let thread_no = self.placed.no;
        if let Some(title) = title {
            self.batch.words.push(Words {
                of: Source::Title,
                row: NewWords {
                    thread_no,
                    seq: 0,
                    title: Some(TITLES.saturating_add(thread_no)),
                    role: None,
                    is_part: false,
                    block: None,
                    text_offset: None,
                    text_length: None,
                    words: word_array(title, self.placed.tenant, thread_no),
                },
            });
        }
        self.thread.title = Some(New(title.map(text)));
    }

    fn context(&mut self, row: &ContextRow<'_>) {
        let content = self.placed.place(row.context.content.as_ref());
        self.batch.contexts.push(NewContext {
            thread_no: self.placed.no,
            id: text(row.context.id.as_str()),
            key: row.context.key.as_deref().map(text),
            status: code(row.status),
            block: content.map(|it| it.block),
            content_offset: content.map(|it| it.offset),
            content_length: content.map(|it| it.length),
            created_at: nanos(row.context.created_at),
            updated_at: row.updated_at.map(nanos),
        });
    }

    fn item(&mut self, row: &ItemRow<'_>) {
        let item = row.item;
        let content = self.placed.place(item.content.as_ref());
        let execution_id = item.execution_id.as_ref().map(ExecutionId::as_str);
        self.thread.leaves_work |= row.waiting;
        self.batch.items.push(NewItem {
            thread_no: self.placed.no,
            seq: seq(row.seq),
            id: text(item.id.as_str()),
            kind: code(item.item_type),
            role: item.role.map(code),
            status: code(row.status),
            channel: item.channel.as_deref().map(text),
            execution_id: execution_id.map(text),
            execution_seq: execution_id.and_then(|id| self.execution_seq(id)),
            has_run: item.run.is_some(),
            waiting: row.waiting,
            place: row.position.map(seq),
            answered_seq: row.answered.map(seq),
            block: content.map(|it| it.block),
            content_offset: content.map(|it| it.offset),
            content_length: content.map(|it| it.length),
            created_at: nanos(item.created_at),
            updated_at: row.updated_at.map(nanos),
        });
        let message = item
            .content
            .as_ref()
            .filter(|_| item.item_type == ItemType::Message);
        if let Some(found) = message.and_then(|content| text_of_content(content.text())) {
            let of = Source::Item(item.id.as_str().to_owned());
            self.words(of, row.seq, item.role, content, &found);
        }
    }

    fn words(
        &mut self,
        of: Source,
        at: Seq,
        role: Option<Role>,
        place: Option<Place>,
        of_text: &str,
    ) {
        let thread_no = self.placed.no;
        self.batch.words.push(Words {
            row: NewWords {
                thread_no,
                seq: seq(at),
                title: None,
                role: role.map(code),
                is_part: matches!(of, Source::Part(..)),
                block: place.map(|it| it.block),
                text_offset: place.map(|it| it.offset),
                text_length: place.map(|it| it.length),
                words: word_array(of_text, self.placed.tenant, thread_no),
            },
            of,
        });
    }

    fn item_change(&mut self, id: &str, change: &ItemChange) {
        self.batch.changed_items.push(ChangedItem {
            thread_no: self.placed.no,
            id: text(id),
            status: change.status.map(|(status, _)| code(status)),
            updated_at: change.status.map(|(_, at)| nanos(at)),
            started: change.started.map(seq),
        });
    }

    fn execution(&mut self, row: &ExecutionRow<'_>) {
        let execution = row.execution;
        let (reason, detail) = interruption(row.interruption);
        let agent = execution.run.as_ref();
        let agent = agent.and_then(|run| run.str_field("agent"));
        self.thread.has_run = true;
        self.thread.leaves_work |= row.status == ExecutionStatus::Executing;
        self.batch.executions.push(NewExecution {
            thread_no: self.placed.no,
            seq: seq(row.seq),
            id: text(execution.id.as_str()),
            trigger_id: text(execution.trigger_item_id.as_str()),
            reaction_id: text(execution.reaction_item_id.as_str()),
            workflow_run_id: execution.workflow_run_id.as_deref().map(text),
            status: code(row.status),
            agent: agent.as_deref().map(text),
            handoffs: i64::from(execution.follows_handoff()),
            interruption_reason: reason.map(text),
            interruption_detail: detail.map(text),
            end_seq: row.end_seq.map(seq),
            created_at: nanos(execution.created_at),
            updated_at: row.updated_at.map(nanos),
        });
    }

    fn execution_change(&mut self, id: &str, change: &ExecutionChange<'_>) {
        let (reason, detail) = interruption(change.status.and_then(|(_, why, _)| why));
        self.batch.changed_executions.push(ChangedExecution {
            thread_no: self.placed.no,
            id: text(id),
            status: change.status.map(|(to, ..)| code(to)),
            updated_at: change.status.map(|(.., at)| nanos(at)),
            interruption_reason: reason.map(text),
            interruption_detail: detail.map(text),
            end_seq: change.end_seq.map(seq),
        });
    }

    fn step(&mut self, row: &StepRow<'_>) {
        let step = row.step;
        self.batch.steps.push(NewStep {
            thread_no: self.placed.no,
            execution_id: text(step.execution_id.as_str()),
            iteration: step.iteration.into(),
            seq: seq(row.seq),
            id: text(step.id.as_str()),
            event_id: text(step.event_id.as_str()),
            status: code(step.status),
            created_at: nanos(step.created_at),
            updated_at: step.updated_at.map(nanos),
        });
        if row.change != StepChange::default() {
            self.step_change(step.id.as_str(), &row.change);
        }
    }

    fn step_change(&mut self, id: &str, change: &StepChange<'_>) {
        let answer = change.answer.as_ref();
        let data = answer.and_then(|answer| self.placed.place(answer.data));
        let end = change.end.as_ref();
        let outcome = end.map(|end| end.outcome);
        let place = |of: Option<&Payload>| self.placed.place(of);
        let calls = place(outcome.and_then(|it| it.tool_calls.as_ref()));
        let results = place(outcome.and_then(|it| it.tool_execution_results.as_ref()));
        let left = outcome.and_then(|it| it.open_calls.as_ref());
        let open = place(left);
        self.batch.changed_steps.push(ChangedStep {
            thread_no: self.placed.no,
            id: text(id),
            input_tokens: int(change.tokens.0),
            output_tokens: int(change.tokens.1),
            answer_seq: answer.map(|it| seq(it.seq)),
            answer_at: answer.map(|it| nanos(it.at)),
            answer_block: data.map(|it| it.block),
            answer_offset: data.map(|it| it.offset),
            answer_length: data.map(|it| it.length),
            status: end.map(|it| code(it.status)),
            updated_at: end.map(|it| nanos(it.at)),
            end_seq: end.map(|it| seq(it.seq)),
            end_block: calls.or(results).or(open).map(|it| it.block),
            calls_offset: calls.map(|it| it.offset),
            calls_length: calls.map(|it| it.length),
            results_offset: results.map(|it| it.offset),
            results_length: results.map(|it| it.length),
            open_offset: open.map(|it| it.offset),
            open_length: open.map(|it| it.length),
            asks: calls_wait_for_people(&OpenCall::list(left)),
            continue_loop: outcome.and_then(|it| it.continue_loop),
            error_text: outcome.and_then(|it| it.error_text.as_deref()).map(text),
        });
    }

    fn part(&mut self, row: &PartRow<'_>, is_new: bool) {
        let place = self.placed.place(Some(row.part));
        let part = WrittenPart {
            thread_no: self.placed.no,
            step_id: text(row.step_id),
            idx: row.idx.into(),
            seq: seq(row.seq),
            kind: row.part_type.as_deref().map(text),
            call_id: row.call_id.as_deref().map(text),
            block: place.map(|it| it.block),
            part_offset: place.map(|it| it.offset),
            part_length: place.map(|it| it.length),
            created_at: nanos(row.created_at),
            updated_at: nanos(row.updated_at),
        };
        if is_new {
            self.batch.parts.push(part);
        } else {
            self.batch.changed_parts.push(part);
        }
        if let Some(found) = text_of_part(row.part.text()) {
            let of = Source::Part(row.step_id.to_owned());
            self.words(of, row.seq, Some(Role::Assistant), place, &found);
        }
    }

    /// Parts of this append that were written before are never written; earlier ones are deleted first.
    fn parts_deleted(&mut self, step_id: &str) {
        let (thread_no, id) = (self.placed.no, text(step_id));
        let batch = &mut *self.batch;
        let of_other = |part: &WrittenPart| part.thread_no != thread_no || part.step_id != id;
        batch.parts.retain(of_other);
        batch.changed_parts.retain(of_other);
        batch
            .started_tools
            .retain(|it| it.thread_no != thread_no || it.step_id != id);
        self.forget_words(|of| matches!(of, Source::Part(step) if step == step_id));
        let step = self.named(step_id);
        self.batch.reset_steps.push(step);
    }

    fn forget_words(&mut self, is_gone: impl Fn(&Source) -> bool) {
        let thread_no = self.placed.no;
        let words = &mut self.batch.words;
        words.retain(|it| it.row.thread_no != thread_no || !is_gone(&it.of));
    }

    fn removed(&mut self, what: &Removed, at: Seq) {
        match what {
            Removed::Item(id) => {
                self.forget_words(|of| matches!(of, Source::Item(item) if item == id.as_str()));
                let item = self.named(id.as_str());
                self.batch.removed_items.push(item);
            }
            Removed::Step(id) => {
                self.forget_words(|of| matches!(of, Source::Part(step) if step == id.as_str()));
                let step = self.named(id.as_str());
                self.batch.removed_steps.push(step);
            }
            // Its summary is not searched.
            Removed::Compaction(_) => {}
        }
        self.batch.removals.push(Removal {
            thread_no: self.placed.no,
            target: text(&what.to_string()),
            seq: seq(at),
        });
    }
}

/// The words of a text that a batch writes.
pub(super) struct Words {
    of: Source,
    pub(super) row: NewWords,
}

/// The owner of a text.
enum Source {
    Title,
    Item(String),
    Part(String),
}
