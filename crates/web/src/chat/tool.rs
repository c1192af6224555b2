//! The card of a tool call: its arguments, its result, and the form if it waits for a person.

use super::pending::WaitingCall;
use super::tool_facts::ToolFact;
use crate::form_field::FilledForm;
use crate::ids;
use crate::json;
use crate::patch::Patch;
use crate::schema_form::SchemaForm;
use crate::words::{INTERRUPTED, outcome_words};
use interop::parts::{ToolPart, ToolState};
use maud::{Markup, html};
use std::sync::Arc;
use timeline::OpenKind;

/// The answer that a pending call waits for, and the thread that the answer goes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Waiting {
    /// The kind of the answer.
    pub(crate) kind: OpenKind,
    /// The key of the thread that the page shows.
    pub(crate) page_key: String,
    /// The key of the thread with the call: that one, or that of a sub-agent.
    pub(crate) thread_key: String,
    /// The agent that calls; empty if the page does not know it.
    pub(crate) agent: String,
    /// The page to return to after an answer without a script, if it is not that thread's.
    pub(crate) back: Option<String>,
}

/// A sub-agent of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Subagent {
    /// The id of its thread.
    pub(crate) thread_id: String,
    /// The agent.
    pub(crate) agent: String,
    /// Whether it has ended.
    pub(crate) is_over: bool,
}

/// A tool call.
#[derive(Clone, Debug)]
pub(crate) struct ToolCard {
    /// The id of its element.
    id: String,
    call_id: String,
    name: String,
    fact: Option<Arc<ToolFact>>,
    /// The text of the arguments so far, while the model writes them.
    arguments: String,
    part: Option<ToolPart>,
    is_running: bool,
    /// Whether the run ended before the call had a result.
    is_left: bool,
    waiting: Option<Waiting>,
    subagents: Vec<Subagent>,
    /// Pending calls of the sub-agents.
    nested: Vec<ToolCard>,
}

impl ToolCard {
    pub(crate) fn new(
        run: &str,
        call_id: &str,
        (name, fact): (&str, Option<Arc<ToolFact>>),
    ) -> Self {
        Self {
            id: ids::call(run, call_id),
            call_id: call_id.to_owned(),
            name: name.to_owned(),
            fact,
            arguments: String::new(),
            part: None,
            is_running: false,
            is_left: false,
            waiting: None,
            subagents: Vec::new(),
            nested: Vec::new(),
        }
    }

    /// Adds the card of a sub-agent's pending call.
    pub(crate) fn add_nested(&mut self, call: &WaitingCall, page_key: &str) {
        let mut card = Self::new(&call.thread_key, &call.call_id, (&call.tool, None));
        card.arguments.clone_from(&call.arguments);
        card.waiting = Some(Waiting {
            kind: call.kind,
            page_key: page_key.to_owned(),
            thread_key: call.thread_key.clone(),
            agent: String::new(),
            back: None,
        });
        self.nested.push(card);
    }

    /// Removes the cards of the sub-agents' pending calls: the sub-agents continue.
    pub(crate) fn drop_nested(&mut self, out: &mut Vec<Patch>) {
        let ids = self.nested.drain(..).map(|card| card.id);
        out.extend(ids.map(|id| Patch::Drop { id }));
    }

    /// The threads of its sub-agents that have not ended.
    pub(crate) fn open_children(&self) -> impl Iterator<Item = &str> {
        let open = self.subagents.iter().filter(|child| !child.is_over);
        open.map(|child| child.thread_id.as_str())
    }

    pub(crate) fn call_id(&self) -> &str {
        &self.call_id
    }

    /// Whether it waits for a person or a client.
    pub(crate) fn waits(&self) -> bool {
        self.waiting.is_some()
    }

    /// Whether it waits for this.
    pub(crate) fn waits_for(&self, kind: OpenKind) -> bool {
        self.waiting
            .as_ref()
            .is_some_and(|waiting| waiting.kind == kind)
    }

    /// The element that nested messages of sub-agents are appended to.
    pub(crate) fn nested_id(&self) -> String {
        ids::within(&self.id, "s")
    }

    /// Adds a piece of the arguments' text.
    pub(crate) fn write_arguments(&mut self, text: &str, out: &mut Vec<Patch>) {
        self.arguments.push_str(text);
        out.push(Patch::Text {
            id: ids::within(&self.id, "a"),
            text: text.to_owned(),
        });
    }

    /// Sets the stored part.
    pub(crate) fn set_part(&mut self, part: &ToolPart, out: &mut Vec<Patch>) {
        part.tool_name().clone_into(&mut self.name);
        if part.is_answered() || part.is_denied() {
            self.is_running = false;
            self.set_waiting(None, out);
        }
        self.part = Some(part.clone());
        self.redraw(out);
    }

    /// The execution ends: a call without a result gets none unless it waits for one.
    pub(crate) fn end(&mut self, out: &mut Vec<Patch>) {
        let is_answered = self.part.as_ref().is_some_and(ToolPart::is_answered);
        if !is_answered && self.waiting.is_none() {
            self.is_running = false;
            self.is_left = true;
            self.redraw(out);
        }
    }

    /// The tool starts.
    pub(crate) fn start(&mut self, out: &mut Vec<Patch>) {
        self.is_left = false;
        self.is_running = true;
        self.redraw(out);
    }

    /// Sets the answer that the call waits for.
    pub(crate) fn set_waiting(&mut self, waiting: Option<Waiting>, out: &mut Vec<Patch>) {
        if self.waiting == waiting {
            return;
        }
        self.waiting = waiting;
        self.redraw(out);
        out.push(Patch::Put {
            id: ids::within(&self.id, "w"),
            html: self.form().into_string(),
        });
    }

    /// A sub-agent starts or ends.
    pub(crate) fn note_subagent(&mut self, noted: Subagent, out: &mut Vec<Patch>) {
        match self
            .subagents
            .iter_mut()
            .find(|known| known.thread_id == noted.thread_id)
        {
            Some(known) => known.is_over = noted.is_over,
            None => self.subagents.push(noted),
        }
        self.redraw(out);
        out.push(Patch::Put {
            id: ids::within(&self.id, "g"),
            html: self.subagent_list().into_string(),
        });
    }

    fn redraw(&self, out: &mut Vec<Patch>) {
        out.push(Patch::Put {
            id: ids::within(&self.id, "h"),
            html: self.head().into_string(),
        });
    }

    /// The state as a word for the style sheet and one for people.
    fn state(&self) -> (&'static str, &'static str) {
        if let Some(part) = &self.part {
            match part.outcome.as_deref() {
                Some("denied") => return ("denied", "denied"),
                Some(INTERRUPTED) => return ("unknown", outcome_words(INTERRUPTED)),
                Some(_) | None => {}
            }
            match part.state {
                ToolState::OutputAvailable => return ("ok", "done"),
                ToolState::OutputError => return ("error", "failed"),
                ToolState::InputAvailable
                | ToolState::ApprovalRequested
                | ToolState::ApprovalResponded => {}
            }
        }
        match &self.waiting {
            Some(waiting) => match waiting.kind {
                OpenKind::Approval => ("waits", "waits for approval"),
                OpenKind::External => ("waits", "waits for a result"),
                OpenKind::Others => ("waits", "waits for another call"),
                OpenKind::Child => ("waits", "waits for its sub-agent"),
            },
            None if self.is_left => ("left", "not finished"),
            None if self.is_running || self.open_children().next().is_some() => {
                ("running", "running")
            }
            None if self.part.is_some() => ("called", "called"),
            None => ("writing", "the model writes the arguments"),
        }
    }

    fn arguments(&self) -> &str {
        self.part
            .as_ref()
            .map_or(self.arguments.as_str(), ToolPart::arguments)
    }

    /// The whole card.
    pub(crate) fn html(&self) -> Markup {
        html! {
            div class="call" id=(self.id) {
                (self.head())
                (self.form())
                (self.subagent_list())
                div class="nested" id=(self.nested_id()) {
                    @for card in &self.nested { (card.html()) }
                }
            }
        }
    }

    fn head(&self) -> Markup {
        let (state, words) = self.state();
        let result = self.part.as_ref().and_then(ToolPart::result_text);
        let duration = self.part.as_ref().and_then(|part| part.duration_ms);
        let is_error = matches!(state, "error" | "denied");
        html! {
            details class="tool" id=(ids::within(&self.id, "h")) data-state=(state) {
                summary {
                    span class="dot" aria-hidden="true" {}
                    code class="name" { (json::visible(&self.name)) }
                    @if let Some(first) = json::first_argument(self.arguments()) {
                        span class="first" dir="auto" { (first) }
                    }
                    span class="words" { (words) }
                    @if let Some(millis) = duration {
                        span class="quiet" { (interop::run::duration_text(millis)) }
                    }
                }
                div class="io" {
                    @if let Some(fact) = &self.fact { (fact.html()) }
                    span class="label" { "Arguments" }
                    pre tabindex="0" { code id=(ids::within(&self.id, "a")) { (json::pretty(self.arguments())) } }
                    @if let Some(result) = result {
                        span class="label" { @if is_error { "Error" } @else { "Result" } }
                        pre tabindex="0" class=[is_error.then_some("error")] { code { (json::pretty(&result)) } }
                    }
                }
            }
        }
    }

    fn subagent_list(&self) -> Markup {
        html! {
            div class="subagents" id=(ids::within(&self.id, "g")) {
                @for subagent in &self.subagents {
                    a href={ "/ui/thread/" (subagent.thread_id) } data-state=(if subagent.is_over { "ok" } else { "running" }) {
                        span class="dot" aria-hidden="true" {}
                        (json::visible(&subagent.agent)) " (sub-agent)"
                        span class="words" { @if subagent.is_over { "done" } @else { "running" } }
                    }
                }
            }
        }
    }

    /// The form of a call that waits for a person.
    fn form(&self) -> Markup {
        let id = ids::within(&self.id, "w");
        match &self.waiting {
            Some(waiting) if waiting.kind == OpenKind::Approval => self.approval(&id, waiting),
            Some(waiting) if waiting.kind == OpenKind::External => self.external(&id, waiting),
            Some(_) | None => html! { div id=(id) {} },
        }
    }

    fn approval(&self, id: &str, waiting: &Waiting) -> Markup {
        let title = ids::within(id, "t");
        html! {
            form class="card waits" id=(id) method="post" action="/ui/answer" aria-labelledby=(title) {
                // Enter in a field presses the first button: it must not allow.
                button type="submit" disabled hidden {}
                h3 id=(title) { "Allow " code { (json::visible(&self.name)) } "?" }
                p class="quiet" { "The call does not run before you allow it." }
                @if let Some(fact) = &self.fact { (fact.html()) }
                (self.hidden_fields(waiting))
                pre tabindex="0" { code { (json::pretty(self.arguments())) } }
                details class="edit" {
                    summary { "Edit the arguments" }
                    label { "Arguments, a JSON object"
                        textarea name="arguments" rows="6" spellcheck="false" data-initial=(self.arguments()) { (json::pretty(self.arguments())) }
                    }
                    button type="submit" name="verdict" value="edit" { "Allow with these arguments" }
                }
                div class="buttons" {
                    button class="primary" type="submit" name="verdict" value="allow" { "Allow once" }
                    button type="submit" name="verdict" value="deny" { "Deny" }
                    label class="why" { span { "Why (optional)" } input name="message" autocomplete="off"; }
                }
            }
        }
    }

    fn external(&self, id: &str, waiting: &Waiting) -> Markup {
        let title = ids::within(id, "t");
        html! {
            form class="card waits" id=(id) method="post" action="/ui/answer" aria-labelledby=(title) {
                h3 id=(title) { "Result of " code { (json::visible(&self.name)) } }
                p class="quiet" { "A client runs this tool. You can send its result instead." }
                (self.hidden_fields(waiting))
                pre tabindex="0" { code { (json::pretty(self.arguments())) } }
                @match self.fact.as_ref().and_then(|fact| fact.result.as_ref()) {
                    Some(schema) => {
                        input type="hidden" name="agent" value=(waiting.agent);
                        input type="hidden" name="tool" value=(self.name);
                        (SchemaForm::of(schema).html(id, &FilledForm::default()))
                    },
                    None => label { "Result, text or JSON" textarea name="output" rows="4" spellcheck="false" {} },
                }
                div class="buttons" {
                    button class="primary" type="submit" name="verdict" value="result" { "Send result" }
                    button type="submit" name="verdict" value="failed" formnovalidate { "Report a failure" }
                }
            }
        }
    }

    fn hidden_fields(&self, waiting: &Waiting) -> Markup {
        html! {
            input type="hidden" name="thread" value=(waiting.page_key);
            input type="hidden" name="call_thread" value=(waiting.thread_key);
            input type="hidden" name="call" value=(self.call_id);
            @if let Some(back) = &waiting.back { input type="hidden" name="to" value=(back); }
        }
    }
}

/// A pending call whose answer the reader may not give, for a page other than its thread's.
pub fn call_facts(call: &WaitingCall) -> Markup {
    html! {
        div class="card waits" {
            h3 { "Call of " code { (json::visible(&call.tool)) } }
            pre tabindex="0" { code { (json::pretty(&call.arguments)) } }
            p class="note" { "This key may only read." }
        }
    }
}

/// The form of a pending call, for a page other than its thread's. `page_key` is the key of the thread to
/// answer on, `back` the page to return to.
pub fn call_form(call: &WaitingCall, page_key: &str, back: &str) -> Markup {
    let mut card = ToolCard::new(&call.thread_key, &call.call_id, (&call.tool, None));
    card.arguments.clone_from(&call.arguments);
    card.waiting = Some(Waiting {
        kind: call.kind,
        page_key: page_key.to_owned(),
        thread_key: call.thread_key.clone(),
        agent: String::new(),
        back: Some(back.to_owned()),
    });
    card.form()
}
