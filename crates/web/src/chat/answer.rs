//! The message of one run: built from the run's events, drawn whole or as patches.

use super::block::{Block, TextBlock};
use super::interruption::stopped;
use super::tool::{Subagent, ToolCard, Waiting};
use super::tool_facts::{ToolFact, ToolFacts};
use crate::execution::{CountedTokens, UNNAMED, agent_of};
use crate::json;
use crate::link::{answer_text, step_file, versions_link};
use crate::patch::Patch;
use crate::words::counted;
use crate::{ids, time};
use interop::parts::{EventPart, StepResponse, ToolPart, is_prompt};
use interop::run::{RunEvent, RunPart};
use jiff::Timestamp;
use maud::{Markup, html};
use std::sync::Arc;
use timeline::{
    BlockKind, Chunk, Execution, Interruption, Marker, MessagePartKind, OpenCall, OpenKind,
    Payload, StepOutcome, StepStatus, ThreadId, part_kind,
};

/// The message of a run.
#[derive(Debug)]
pub(crate) struct Answer {
    /// The id of the first execution.
    id: String,
    /// The id of the last execution.
    execution: String,
    /// The ids of the executions before it.
    earlier: Vec<String>,
    /// The id of the item that the first execution writes.
    item: String,
    /// The key of the thread that the page shows.
    page_key: String,
    /// The key of the run's thread; that of a sub-agent is another one.
    thread_key: String,
    agent: String,
    facts: Arc<ToolFacts>,
    model: Option<String>,
    tokens: u64,
    since: Timestamp,
    until: Option<Timestamp>,
    steps: Vec<Step>,
    /// Why it ended early.
    interruption: Option<Interruption>,
}

#[derive(Debug)]
struct Step {
    id: String,
    /// Why it failed.
    error: Option<String>,
    blocks: Vec<Block>,
}

impl Answer {
    /// The message of the run that begins with an execution. The keys are those of the page's thread and
    /// of the run's.
    pub(crate) fn new(
        execution: &Execution,
        (page_key, thread_key): (&str, &str),
        facts: &Arc<ToolFacts>,
    ) -> Self {
        Self {
            id: execution.id.as_str().to_owned(),
            execution: execution.id.as_str().to_owned(),
            earlier: Vec::new(),
            item: execution.reaction_item_id.as_str().to_owned(),
            page_key: page_key.to_owned(),
            thread_key: thread_key.to_owned(),
            agent: agent_of(execution).unwrap_or_else(|| UNNAMED.to_owned()),
            facts: Arc::clone(facts),
            model: None,
            tokens: 0,
            since: execution.created_at,
            until: None,
            steps: Vec::new(),
            interruption: None,
        }
    }

    /// Whether it is the message of a sub-agent within a card.
    fn is_nested(&self) -> bool {
        self.page_key != self.thread_key
    }

    /// The threads of the sub-agents that have not ended.
    pub(crate) fn open_children(&self) -> Vec<ThreadId> {
        let cards = self.cards();
        cards
            .flat_map(ToolCard::open_children)
            .map(ThreadId::from)
            .collect()
    }

    /// The id of its element.
    pub(crate) fn element(&self) -> String {
        ids::message(&self.id)
    }

    /// The agent that runs.
    pub(crate) fn agent(&self) -> &str {
        &self.agent
    }

    /// Whether it has a step.
    pub(crate) fn has_step(&self, id: &str) -> bool {
        self.steps.iter().any(|step| step.id == id)
    }

    /// Whether it is still being written.
    pub(crate) fn is_running(&self) -> bool {
        self.until.is_none()
    }

    /// Whether a call waits for a person or a client.
    pub(crate) fn waits(&self) -> bool {
        self.cards().any(ToolCard::waits)
    }

    /// Whether a call waits for a sub-agent.
    pub(crate) fn waits_for_children(&self) -> bool {
        self.cards().any(|card| card.waits_for(OpenKind::Child))
    }

    /// Removes a step and what it shows.
    pub(crate) fn remove_step(&mut self, id: &str, out: &mut Vec<Patch>) {
        self.steps.retain(|step| step.id != id);
        if self.is_empty() {
            let id = self.element();
            out.push(Patch::Drop { id });
        }
    }

    /// Whether its run is over and readers omit all of its steps.
    pub(crate) fn is_empty(&self) -> bool {
        self.until.is_some() && self.steps.is_empty()
    }

    fn cards(&self) -> impl Iterator<Item = &ToolCard> {
        let blocks = self.steps.iter().flat_map(|step| &step.blocks);
        blocks.filter_map(|block| match block {
            Block::Tool(card) => Some(&**card),
            Block::Text(_)
            | Block::Reasoning(_)
            | Block::Handoff { .. }
            | Block::File { .. }
            | Block::Source { .. }
            | Block::Data { .. } => None,
        })
    }

    /// The cards, the last first.
    fn cards_mut(&mut self) -> impl Iterator<Item = &mut ToolCard> {
        let blocks = self.steps.iter_mut().rev();
        let blocks = blocks.flat_map(|step| step.blocks.iter_mut().rev());
        blocks.filter_map(|block| match block {
            Block::Tool(card) => Some(&mut **card),
            Block::Text(_)
            | Block::Reasoning(_)
            | Block::Handoff { .. }
            | Block::File { .. }
            | Block::Source { .. }
            | Block::Data { .. } => None,
        })
    }

    /// The last card of a call.
    pub(crate) fn card(&mut self, call_id: &str) -> Option<&mut ToolCard> {
        self.cards_mut().find(|card| card.call_id() == call_id)
    }

    /// Applies an event of the run, and adds the patches that bring an open page up to date.
    pub(crate) fn apply(&mut self, at: Timestamp, event: &RunEvent<'_>, out: &mut Vec<Patch>) {
        match event {
            RunEvent::Continued { execution, .. } => self.go_on(execution, out),
            RunEvent::StepStarted { step } => self.start_step(step.id.as_str(), out),
            RunEvent::Chunk(chunk) => self.chunk(chunk, out),
            RunEvent::StepReset { .. } => self.void_step(out),
            RunEvent::Responded { response } => self.responded(response.as_ref(), out),
            RunEvent::Part {
                idx, part, payload, ..
            } => self.part((*idx, part), payload, out),
            RunEvent::StepEnded {
                status, outcome, ..
            } => self.end_step(*status, outcome, out),
            RunEvent::ExecutionEnded { interruption, .. } => self.end(at, *interruption, out),
            RunEvent::Started { .. }
            | RunEvent::Abandoned
            | RunEvent::Ended
            | RunEvent::ContinuationPending
            | RunEvent::ItemAdded(_)
            | RunEvent::ThreadChanged(_) => {}
        }
    }

    fn go_on(&mut self, execution: &Execution, out: &mut Vec<Patch>) {
        let id = execution.id.as_str().to_owned();
        self.earlier
            .push(std::mem::replace(&mut self.execution, id));
        if let Some(agent) = agent_of(execution) {
            self.agent = agent;
        }
        self.until = None;
        self.interruption = None;
        for card in self.cards_mut() {
            card.drop_nested(out);
        }
        self.frame(out);
    }

    /// Redraws the head and the foot.
    fn frame(&self, out: &mut Vec<Patch>) {
        let element = self.element();
        out.push(Patch::Mark {
            id: element.clone(),
            name: "state",
            value: self.state().to_owned(),
        });
        for (role, html) in [("h", self.head()), ("f", self.foot())] {
            out.push(Patch::Put {
                id: ids::within(&element, role),
                html: html.into_string(),
            });
        }
    }

    fn start_step(&mut self, id: &str, out: &mut Vec<Patch>) {
        let step = Step {
            id: id.to_owned(),
            error: None,
            blocks: Vec::new(),
        };
        out.push(Patch::Append {
            id: ids::within(&self.element(), "b"),
            html: step.html().into_string(),
        });
        self.steps.push(step);
    }

    fn void_step(&mut self, out: &mut Vec<Patch>) {
        let Some(step) = self.steps.last_mut() else {
            return;
        };
        step.blocks.clear();
        out.push(Patch::Put {
            id: ids::step(&step.id),
            html: step.html().into_string(),
        });
        out.push(Patch::Status {
            words: "An attempt was interrupted. The agent begins this step again.".to_owned(),
        });
    }

    /// Adds a block to the last step.
    fn add(&mut self, block: Block, out: &mut Vec<Patch>) {
        let Some(step) = self.steps.last_mut() else {
            return;
        };
        out.push(Patch::Append {
            id: ids::step(&step.id),
            html: block.html().into_string(),
        });
        step.blocks.push(block);
    }

    fn chunk(&mut self, chunk: &Chunk<'_>, out: &mut Vec<Patch>) {
        match chunk {
            Chunk::BlockStart { kind, block, .. } => {
                if let Some(Block::Reasoning(before)) = self
                    .steps
                    .last_mut()
                    .and_then(|step| step.blocks.last_mut())
                {
                    before.pause(out);
                }
                let text = TextBlock::new(&self.id, &block.id);
                let block = match kind {
                    BlockKind::Text => Block::Text(text),
                    BlockKind::Reasoning => Block::Reasoning(text),
                };
                self.add(block, out);
            }
            Chunk::BlockDelta { block, text, .. } => {
                if let Some((known, _)) = self.text(&block.id) {
                    known.push(text, out);
                }
            }
            Chunk::BlockEnd { block, .. } => {
                if let Some((known, is_reasoning)) = self.text(&block.id) {
                    known.finish(is_reasoning, out);
                }
            }
            Chunk::ToolInputStart {
                tool_call_id,
                tool_name,
                ..
            } => {
                let card = ToolCard::new(&self.id, tool_call_id, self.tool_named(tool_name));
                self.add(Block::Tool(Box::new(card)), out);
            }
            Chunk::ToolInputDelta {
                tool_call_id, text, ..
            } => {
                if let Some(card) = self.card(tool_call_id) {
                    card.write_arguments(text, out);
                }
            }
            Chunk::Source { data, .. } => self.add(Block::source(data), out),
            Chunk::Data { chunk_type, data } => self.add(Block::data(chunk_type, *data, true), out),
            Chunk::Marker(Marker::ToolStarted(Some(data))) => {
                let call = data.str_field("toolCallId").unwrap_or_default();
                if let Some(card) = self.card(&call) {
                    card.start(out);
                }
            }
            Chunk::Marker(_) | Chunk::Runtime { .. } | Chunk::Other { .. } => {}
        }
    }

    /// The block with this id in the last step, and whether it is reasoning.
    fn text(&mut self, id: &str) -> Option<(&mut TextBlock, bool)> {
        let blocks = self.steps.last_mut()?.blocks.iter_mut().rev();
        let mut texts = blocks.filter_map(|block| match block {
            Block::Text(text) => Some((text, false)),
            Block::Reasoning(text) => Some((text, true)),
            Block::Tool(_)
            | Block::Handoff { .. }
            | Block::File { .. }
            | Block::Source { .. }
            | Block::Data { .. } => None,
        });
        texts.find(|(text, _)| text.block_id == id)
    }

    fn responded(&mut self, response: Option<&StepResponse>, out: &mut Vec<Patch>) {
        self.drop_streamed(out);
        let Some(response) = response else { return };
        if let Some(model) = &response.model {
            self.model = Some(model.clone());
        }
        self.tokens += CountedTokens::read(response.usage.as_ref()).total();
        self.frame(out);
    }

    /// Removes the blocks that no new page shows.
    fn drop_streamed(&mut self, out: &mut Vec<Patch>) {
        if let Some(step) = self.steps.last_mut()
            && step.blocks.iter().any(Block::is_streamed)
        {
            step.blocks.retain(|block| !block.is_streamed());
            out.push(Patch::Put {
                id: ids::step(&step.id),
                html: step.html().into_string(),
            });
        }
    }

    fn part(&mut self, (idx, part): (u32, &RunPart), payload: &Payload, out: &mut Vec<Patch>) {
        match part {
            RunPart::Tool(tool) => self.tool(tool, out),
            RunPart::Event(event) => self.event(event, out),
            RunPart::File { url, media_type } => {
                let step = self.steps.last().map(|step| step.id.as_str());
                let place = (self.execution.as_str(), step.unwrap_or_default());
                let file = Block::File {
                    url: url.clone(),
                    source: step_file(&self.thread_key, place, idx),
                    media_type: media_type.clone(),
                };
                self.add(file, out);
            }
            RunPart::Content => self.content(payload, out),
        }
    }

    /// A tool and what is configured of it.
    fn tool_named<'n>(&self, name: &'n str) -> (&'n str, Option<Arc<ToolFact>>) {
        (name, self.facts.of(&self.agent, name))
    }

    fn tool(&mut self, tool: &ToolPart, out: &mut Vec<Patch>) {
        if let Some(card) = self.card(&tool.tool_call_id) {
            return card.set_part(tool, out);
        }
        let mut card = ToolCard::new(
            &self.id,
            &tool.tool_call_id,
            self.tool_named(tool.tool_name()),
        );
        card.set_part(tool, &mut Vec::new());
        self.add(Block::Tool(Box::new(card)), out);
    }

    fn event(&mut self, event: &EventPart, out: &mut Vec<Patch>) {
        let data = &event.data;
        let text = |name: &str| data.str_field(name).unwrap_or_default();
        match event.part_type.as_str() {
            EventPart::AGENT_HANDOFF => {
                let (to, reason) = (text("to"), data.str_field("reason"));
                self.add(Block::Handoff { to, reason }, out);
            }
            EventPart::THREAD_SPAWN => {
                if let Some(card) = self.card(&text("tool_call_id")) {
                    let noted = Subagent {
                        thread_id: text("spawned_thread_id"),
                        agent: text("subagent_type"),
                        is_over: false,
                    };
                    card.note_subagent(noted, out);
                }
            }
            EventPart::THREAD_END => {
                if let Some(card) = self.card(&text("tool_call_id")) {
                    let noted = Subagent {
                        thread_id: text("thread_id"),
                        agent: String::new(),
                        is_over: true,
                    };
                    card.note_subagent(noted, out);
                }
            }
            _ => {}
        }
    }

    /// Adds a part of another kind. Texts are blocks already.
    fn content(&mut self, payload: &Payload, out: &mut Vec<Patch>) {
        if is_prompt(payload) {
            return;
        }
        let name = payload.str_field("type").unwrap_or_default();
        let is_text = match part_kind(&name) {
            Some(
                MessagePartKind::OutputText
                | MessagePartKind::InputText
                | MessagePartKind::Refusal
                | MessagePartKind::Reasoning,
            ) => true,
            Some(
                MessagePartKind::InputImage
                | MessagePartKind::InputFile
                | MessagePartKind::Tool(_)
                | MessagePartKind::Extension(_),
            )
            | None => false,
        };
        if !is_text {
            self.add(Block::data(&name, Some(payload), false), out);
        }
    }

    fn end_step(&mut self, status: StepStatus, outcome: &StepOutcome, out: &mut Vec<Patch>) {
        self.drop_streamed(out);
        if status == StepStatus::Failed
            && let Some(step) = self.steps.last_mut()
        {
            step.error.clone_from(&outcome.error_text);
        }
        let keys = (self.page_key.clone(), self.thread_key.clone());
        let agent = self.agent.clone();
        for call in OpenCall::list(outcome.open_calls.as_ref()) {
            if let Some(card) = self.card(&call.tool_call_id) {
                let waiting = Waiting {
                    kind: call.kind,
                    page_key: keys.0.clone(),
                    thread_key: keys.1.clone(),
                    agent: agent.clone(),
                    back: None,
                };
                card.set_waiting(Some(waiting), out);
            }
        }
    }

    fn end(&mut self, at: Timestamp, interruption: Option<&Interruption>, out: &mut Vec<Patch>) {
        self.until = Some(at);
        self.interruption = interruption.cloned();
        for card in self.cards_mut() {
            card.end(out);
        }
        self.frame(out);
    }

    /// The error that ended the run, if the interruption does not name it.
    fn error(&self) -> Option<&str> {
        let error = self.steps.last()?.error.as_deref();
        let is_named = |error: &&str| {
            self.interruption
                .as_ref()
                .is_some_and(|it| it.reason == **error || it.detail.as_deref() == Some(*error))
        };
        error.filter(|error| !is_named(error))
    }

    fn state(&self) -> &'static str {
        if self.until.is_none() {
            "running"
        } else if self.interruption.is_some() || self.error().is_some() {
            "stopped"
        } else {
            "done"
        }
    }

    /// The whole message.
    pub(crate) fn html(&self) -> Markup {
        let element = self.element();
        html! {
            article class="message agent" id=(element) data-state=(self.state()) aria-busy=[self.is_running().then_some("true")] {
                (self.head())
                div class="body" id=(ids::within(&element, "b")) {
                    @for step in &self.steps { (step.html()) }
                }
                (self.foot())
            }
        }
    }

    fn head(&self) -> Markup {
        html! {
            header id=(ids::within(&self.element(), "h")) {
                @if self.is_nested() {
                    h4 { (json::visible(&self.agent)) " " span class="quiet" { "sub-agent" } }
                } @else {
                    h2 { (json::visible(&self.agent)) }
                }
                span class="quiet meta" {
                    @if let Some(model) = &self.model { span { (json::visible(model)) } }
                    @match self.until {
                        Some(until) => span { (time::between(self.since, until)) },
                        None => span class="working" { "working" },
                    }
                    @if self.tokens > 0 { span { (counted(self.tokens, "token")) } }
                    (time::instant(self.since))
                }
            }
        }
    }

    fn foot(&self) -> Markup {
        html! {
            footer id=(ids::within(&self.element(), "f")) {
                @if let Some(interruption) = &self.interruption { (stopped(interruption)) }
                @if let Some(error) = self.error() {
                    p class="note error" dir="auto" { "Error: " (json::visible(error)) }
                }
                @if self.until.is_some() && !self.is_nested() { (self.actions()) }
            }
        }
    }

    /// The address of its text.
    fn text_source(&self) -> String {
        let executions = self.earlier.iter().chain([&self.execution]);
        answer_text(&self.thread_key, executions.map(String::as_str))
    }

    fn actions(&self) -> Markup {
        html! {
            div class="actions" {
                button type="button" class="copy" data-text=(self.text_source()) { "Copy" }
                form method="post" action="/ui/regenerate" {
                    input type="hidden" name="thread" value=(self.thread_key);
                    input type="hidden" name="item" value=(self.item);
                    button type="submit" { "Answer again" }
                }
                (versions_link(&self.thread_key, &self.item))
                form method="post" action="/ui/fork" {
                    input type="hidden" name="thread" value=(self.thread_key);
                    input type="hidden" name="execution" value=(self.execution);
                    button type="submit" { "Fork" }
                }
            }
        }
    }
}

impl Step {
    fn html(&self) -> Markup {
        html! {
            div class="step" id=(ids::step(&self.id)) {
                @for block in &self.blocks { (block.html()) }
            }
        }
    }
}
