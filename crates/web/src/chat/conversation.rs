//! A thread as a conversation: drawn whole from a transcript, then updated record by record.

use super::answer::Answer;
use super::pending::WaitingCall;
use super::tool_facts::ToolFacts;
use super::user;
use crate::ids;
use crate::json;
use crate::patch::Patch;
use crate::requests::CapabilityRequest;
use crate::words::status_words;
use interop::run::{RunFold, RunSelector, continues, hands_over, resume};
use maud::{Markup, html};
use std::collections::BTreeMap;
use std::sync::Arc;
use timeline::{
    Chunk, Entry, Event, Item, ItemId, Marker, Reaction, Record, Removed, ThreadId, ThreadStatus,
    ThreadUpdate, Transcript,
};

/// The conversation of a thread.
///
/// [`Conversation::of`] draws the messages of a transcript. [`Conversation::apply`] turns each later
/// record into patches. The last run may be at work: its events so far are folded again, at a cost
/// proportional to that run.
#[derive(Debug)]
pub struct Conversation {
    /// The key of the thread.
    key: String,
    facts: Arc<ToolFacts>,
    pub(super) entries: Vec<Drawn>,
    /// The fold of the last run.
    fold: Option<RunFold>,
    /// The items that may trigger an execution.
    items: BTreeMap<ItemId, Item>,
    /// The sub-agents at work.
    children: BTreeMap<ThreadId, Child>,
    /// The requests of the thread.
    pub(super) requests: Vec<CapabilityRequest>,
    status: ThreadStatus,
    /// Whether earlier messages are no longer in memory.
    has_forgotten: bool,
}

/// Number of messages that an open page's conversation keeps in memory.
const KEPT: usize = 16;

/// A message of the conversation.
#[derive(Debug)]
pub(super) enum Drawn {
    Item(Box<Item>),
    Answer(Box<Answer>),
}

/// The message of a sub-agent at work.
#[derive(Debug)]
struct Child {
    fold: RunFold,
    answer: Option<Answer>,
    /// The element that its messages are appended to.
    within: String,
}

impl Conversation {
    /// The conversation up to the end of a transcript.
    pub fn of(key: &str, transcript: &Transcript) -> Self {
        Self::with_tools(key, transcript, Arc::default())
    }

    /// The conversation up to the end of a transcript. Its calls name what is configured of their tools.
    pub fn with_tools(key: &str, transcript: &Transcript, facts: Arc<ToolFacts>) -> Self {
        let mut new = Self {
            key: key.to_owned(),
            facts,
            entries: Vec::new(),
            fold: None,
            items: BTreeMap::new(),
            children: BTreeMap::new(),
            requests: Vec::new(),
            has_forgotten: false,
            status: transcript
                .thread
                .as_ref()
                .map_or(ThreadStatus::Open, |thread| thread.status),
        };
        let mut run: Vec<&Reaction> = Vec::new();
        let mut trigger = None;
        for entry in &transcript.entries {
            match entry {
                Entry::Item(item) => {
                    trigger = Some(item);
                    new.items.insert(item.id.clone(), item.clone());
                    if user::is_shown(item, !run.is_empty()) {
                        new.close(&mut run);
                        new.entries.push(Drawn::Item(Box::new(item.clone())));
                    }
                }
                Entry::Reaction(reaction) => {
                    if !continues(&reaction.execution, trigger) {
                        new.close(&mut run);
                    }
                    // Only what waits or is new can still trigger an execution.
                    new.items.retain(|_, item| item.run.is_some());
                    run.push(reaction);
                }
            }
        }
        new.close(&mut run);
        new
    }

    /// Adds the message of a run.
    fn close(&mut self, run: &mut Vec<&Reaction>) {
        let Some(first) = run.first() else { return };
        let mut answer = Answer::new(&first.execution, (&self.key, &self.key), &self.facts);
        let (mut fold, events) = resume(run);
        let mut patches = Vec::new();
        for (at, event) in &events {
            answer.apply(*at, event, &mut patches);
        }
        if run.last().is_some_and(|last| hands_over(last)) {
            fold.await_next();
        }
        self.entries.push(Drawn::Answer(Box::new(answer)));
        self.fold = Some(fold);
        run.clear();
    }

    /// Shows the pending calls of sub-agents in the cards that lead to them.
    pub fn note_pending(&mut self, pending: &[WaitingCall]) {
        for call in pending.iter().filter(|call| !call.path.is_empty()) {
            let Some(own) = call.path.first() else {
                continue;
            };
            let key = self.key.clone();
            if let Some(card) = self.last_answer().and_then(|answer| answer.card(own)) {
                card.add_nested(call, &key);
            }
        }
    }

    fn last_answer(&mut self) -> Option<&mut Answer> {
        self.entries.iter_mut().rev().find_map(|entry| match entry {
            Drawn::Answer(answer) => Some(&mut **answer),
            Drawn::Item(_) => None,
        })
    }

    /// Whether a call of the last run waits for a sub-agent.
    pub fn waits_for_children(&self) -> bool {
        let mut entries = self.entries.iter().rev();
        entries
            .find_map(|entry| match entry {
                Drawn::Answer(answer) => Some(answer.waits_for_children()),
                Drawn::Item(_) => None,
            })
            .unwrap_or_default()
    }

    /// The sub-agents of the running run whose threads have not ended.
    pub fn open_children(&self) -> Vec<ThreadId> {
        let Some(Drawn::Answer(answer)) = self
            .entries
            .iter()
            .rev()
            .find(|entry| matches!(entry, Drawn::Answer(_)))
        else {
            return Vec::new();
        };
        if !answer.is_running() {
            return Vec::new();
        }
        answer.open_children()
    }

    /// The messages as HTML, in groups that browsers draw when they are near.
    pub fn html(&self) -> Markup {
        html! {
            @for request in self.earlier_requests() { (request.html()) }
            @for entry in &self.entries {
                (self.entry(entry))
                @for request in self.requests_of(entry) { (request.html()) }
            }
        }
    }

    fn entry(&self, entry: &Drawn) -> Markup {
        match entry {
            Drawn::Item(item) => user::message(item, &self.key),
            Drawn::Answer(answer) if answer.is_empty() => html! {},
            Drawn::Answer(answer) => answer.html(),
        }
    }

    /// The patches that bring a page up to date that was drawn earlier: each message anew.
    pub fn redraw(&self) -> Vec<Patch> {
        let last = |html: Markup| Patch::Before {
            id: ids::END_OF_LOG.to_owned(),
            html: html.into_string(),
        };
        let entries = self.entries.iter().flat_map(|entry| {
            let requests = self.requests_of(entry).map(CapabilityRequest::html);
            std::iter::once(self.entry(entry)).chain(requests).map(last)
        });
        let mut out: Vec<Patch> = entries
            .filter(|patch| !matches!(patch, Patch::Before { html, .. } if html.is_empty()))
            .collect();
        out.extend(self.put_unanchored());
        out.push(self.waiting_patch());
        out.push(self.state());
        out
    }

    fn state(&self) -> Patch {
        Patch::Put {
            id: ids::THREAD_STATE.to_owned(),
            html: state(self.status).into_string(),
        }
    }

    /// Whether the thread is at work.
    pub fn status(&self) -> ThreadStatus {
        self.status
    }

    /// Forgets all but the last messages, so that the memory of a stream does not grow with its thread.
    pub fn forget_earlier(&mut self) {
        let last_answer = self
            .entries
            .iter()
            .rposition(|entry| matches!(entry, Drawn::Answer(_)));
        let n = self.entries.len().saturating_sub(KEPT);
        let n = n.min(last_answer.unwrap_or(n));
        self.entries.drain(..n);
        self.has_forgotten |= n > 0;
        // Only what waits or is new can still trigger an execution.
        self.items.retain(|_, item| item.run.is_some());
    }

    /// Applies a record of the thread, and adds the patches that bring an open page up to date.
    pub fn apply(&mut self, record: &Record, out: &mut Vec<Patch>) {
        match &record.event {
            Event::ItemCreated { item } if item.execution_id.is_none() => self.add_item(item, out),
            Event::ExecutionCreated { execution } => {
                let trigger = self.items.remove(&execution.trigger_item_id);
                self.begin(execution, trigger, out);
            }
            Event::ThreadStatusChanged { to, .. } => {
                self.status = *to;
                out.push(self.state());
            }
            Event::ChunkEmitted {
                execution_id: None,
                chunk_type,
                data,
                ..
            } => self.thread_changed(&Chunk::decode(chunk_type, data.as_ref()), out),
            Event::ItemCreated { .. }
            | Event::ChunkEmitted { .. }
            | Event::ContextCreated { .. }
            | Event::ContextResolved { .. }
            | Event::ContextStatusChanged { .. }
            | Event::ThreadCreated { .. }
            | Event::ThreadResolved { .. }
            | Event::ThreadFinished { .. }
            | Event::ItemStatusChanged { .. }
            | Event::ExecutionStatusChanged { .. }
            | Event::StepCreated { .. }
            | Event::StepStatusChanged { .. }
            | Event::PartCreated { .. }
            | Event::PartUpdated { .. } => {}
        }
        let Some(fold) = &mut self.fold else { return };
        let events = fold.events(record);
        if events.is_empty() {
            return;
        }
        let Some(Drawn::Answer(answer)) = self
            .entries
            .iter_mut()
            .rev()
            .find(|entry| matches!(entry, Drawn::Answer(_)))
        else {
            return;
        };
        for event in &events {
            answer.apply(record.at, event, out);
            if matches!(event, interop::run::RunEvent::Ended) {
                out.push(Patch::Status {
                    words: ended(answer),
                });
            }
        }
    }

    fn add_item(&mut self, item: &Item, out: &mut Vec<Patch>) {
        self.items.insert(item.id.clone(), item.clone());
        if !user::is_shown(item, self.fold.is_some()) {
            return;
        }
        out.push(Patch::Before {
            id: ids::END_OF_LOG.to_owned(),
            html: user::message(item, &self.key).into_string(),
        });
        self.entries.push(Drawn::Item(Box::new(item.clone())));
    }

    /// The thread's title changes, or readers omit a message from now on.
    fn thread_changed(&mut self, chunk: &Chunk<'_>, out: &mut Vec<Patch>) {
        let Chunk::Marker(marker) = chunk else { return };
        match marker {
            Marker::ItemRemoved(Some(data)) => {
                if let Ok(removed) = data.read() {
                    self.remove(&removed, out);
                }
            }
            Marker::ThreadUpdated(Some(data)) => {
                let update: ThreadUpdate = data.read().unwrap_or_default();
                if let Some(title) = update.title {
                    out.push(Patch::Put {
                        id: ids::TITLE.to_owned(),
                        html: title_html(title.as_deref().unwrap_or_default()).into_string(),
                    });
                }
            }
            Marker::ItemRemoved(None)
            | Marker::ThreadUpdated(None)
            | Marker::ThreadCompacted(_)
            | Marker::StepResponse(_)
            | Marker::StepReset
            | Marker::ToolStarted(_)
            | Marker::StepNoted(_)
            | Marker::ExecutionResumed
            | Marker::ExecutionParked => {}
        }
    }

    fn remove(&mut self, removed: &Removed, out: &mut Vec<Patch>) {
        let id = match removed {
            // The page has the runs themselves.
            Removed::Compaction(_) => return,
            Removed::Item(id) => {
                self.items.remove(id);
                self.entries
                    .retain(|entry| !matches!(entry, Drawn::Item(item) if item.id == *id));
                ids::message(id.as_str())
            }
            Removed::Step(id) => {
                let is_known = |entry: &Drawn| matches!(entry, Drawn::Answer(answer) if answer.has_step(id.as_str()));
                if self.has_forgotten && !self.entries.iter().any(is_known) {
                    out.push(Patch::Reload);
                    return;
                }
                for entry in &mut self.entries {
                    if let Drawn::Answer(answer) = entry {
                        answer.remove_step(id.as_str(), out);
                    }
                }
                ids::step(id.as_str())
            }
        };
        out.push(Patch::Drop { id });
    }

    /// An execution begins: it continues the last run, or is a new one.
    fn begin(
        &mut self,
        execution: &timeline::Execution,
        trigger: Option<Item>,
        out: &mut Vec<Patch>,
    ) {
        if continues(execution, trigger.as_ref())
            && let Some(fold) = &mut self.fold
        {
            if !fold.selector().will_continue() {
                fold.await_next();
            }
            return;
        }
        if let Some(mut item) = trigger.filter(|item| item.run.is_some()) {
            // It waited; the answer stands below it.
            item.run = None;
            out.push(Patch::Drop {
                id: ids::message(item.id.as_str()),
            });
            out.push(Patch::Before {
                id: ids::END_OF_LOG.to_owned(),
                html: user::message(&item, &self.key).into_string(),
            });
            self.entries
                .retain(|entry| !matches!(entry, Drawn::Item(known) if known.id == item.id));
            self.entries.push(Drawn::Item(Box::new(item)));
        }
        self.children.clear();
        self.fold = Some(RunFold::new(RunSelector::running(None)).with_blocks());
        let answer = Answer::new(execution, (&self.key, &self.key), &self.facts);
        out.push(Patch::Before {
            id: ids::END_OF_LOG.to_owned(),
            html: answer.html().into_string(),
        });
        out.push(Patch::Status {
            words: format!("{} answers.", json::visible(answer.agent())),
        });
        self.entries.push(Drawn::Answer(Box::new(answer)));
    }

    /// Applies a record of a sub-agent's thread. `calls` are the calls that lead to it, the thread's
    /// own first.
    pub fn apply_child(
        &mut self,
        (thread, key): (&ThreadId, &str),
        (parent, call): (&ThreadId, &str),
        record: &Record,
        out: &mut Vec<Patch>,
    ) {
        if !self.children.contains_key(thread) {
            let Some(within) = self.nested_place(parent, call) else {
                return;
            };
            let fold = RunFold::new(RunSelector::running(None)).with_blocks();
            let child = Child {
                fold,
                answer: None,
                within,
            };
            self.children.insert(thread.clone(), child);
        }
        let Some(child) = self.children.get_mut(thread) else {
            return;
        };
        child.apply((&self.key, key), &self.facts, record, out);
    }

    /// The element for the messages of a sub-agent that a call started.
    fn nested_place(&mut self, parent: &ThreadId, call: &str) -> Option<String> {
        let answer = match self.children.get_mut(parent) {
            Some(child) => child.answer.as_mut(),
            None => self.last_answer(),
        };
        Some(answer?.card(call)?.nested_id())
    }
}

impl Child {
    fn apply(
        &mut self,
        keys: (&str, &str),
        facts: &Arc<ToolFacts>,
        record: &Record,
        out: &mut Vec<Patch>,
    ) {
        if let Event::ExecutionCreated { execution } = &record.event {
            match &self.answer {
                Some(_) if self.fold.selector().will_continue() => {}
                Some(_) => self.fold.await_next(),
                None => {
                    let answer = Answer::new(execution, keys, facts);
                    out.push(Patch::Append {
                        id: self.within.clone(),
                        html: answer.html().into_string(),
                    });
                    self.answer = Some(answer);
                }
            }
        }
        let events = self.fold.events(record);
        if let Some(answer) = &mut self.answer {
            for event in &events {
                answer.apply(record.at, event, out);
            }
        }
    }
}

/// The sentence for the status line at the end of a run.
fn ended(answer: &Answer) -> String {
    let agent = json::visible(answer.agent());
    if answer.waits() {
        format!("{agent} waits for you.")
    } else {
        format!("The answer of {agent} is complete.")
    }
}

/// The title of a thread.
pub(crate) fn title_html(title: &str) -> Markup {
    html! { h1 id=(ids::TITLE) dir="auto" { (json::visible(title)) } }
}

/// The line that names the state of the thread.
pub(crate) fn state(status: ThreadStatus) -> Markup {
    html! {
        span id=(ids::THREAD_STATE) class="state" data-state=(status.to_string()) {
            @if status != ThreadStatus::Open { (status_words(status).1) }
        }
    }
}
