//! The runs of a thread, in order.

use super::frame::ConsoleFrame;
use crate::chat::message_text;
use crate::elements::{badge, paging};
use crate::execution::{CountedTokens, UNNAMED, agent_of, execution_state};
use crate::json;
use crate::link::{at_path, chat_path, path_segment, run_path};
use crate::time;
use crate::words::counted;
use interop::parts::ToolPart;
use jiff::Timestamp;
use maud::{Markup, html};
use timeline::{Item, ItemType, Reaction};

/// Maximum length of a trigger's text, in characters.
const TRIGGER: usize = 140;

/// A run of a thread.
#[derive(Clone, Debug)]
pub struct TimelineRun {
    /// Its execution with its steps.
    pub reaction: Reaction,
    /// The item that it responds to, if the page has it.
    pub trigger: Option<Item>,
    /// The event that began it; absent if that is in the log of the thread that this one was forked from.
    pub seq: Option<u64>,
    /// Whether its calls wait for answers.
    pub is_waiting: bool,
}

/// The page of a thread's runs.
#[derive(Debug)]
pub struct TimelinePage<'a> {
    /// The frame of the page.
    pub frame: ConsoleFrame<'a>,
    /// The key of the thread.
    pub thread_key: &'a str,
    /// The runs, oldest first.
    pub runs: &'a [TimelineRun],
    /// The cursor of the page before.
    pub before: Option<u64>,
    /// Whether the page ends with the thread.
    pub is_last: bool,
    /// The instant at which it was drawn.
    pub now: Timestamp,
}

impl TimelinePage<'_> {
    /// The page as HTML.
    pub fn html(&self) -> Markup {
        let path = format!("/console/t/{}", path_segment(self.thread_key));
        self.frame.html(&html! {
            h2 { "Runs" }
            @if self.runs.is_empty() {
                section class="empty" {
                    p { "A run is the work of an agent on one message. This thread has none yet." }
                    p { a href=(chat_path(self.thread_key)) { "Write a message" } }
                }
            } @else { (self.table()) }
            (paging(&html! {
                @if let Some(before) = self.before { a class="button" href={ (path) "?before=" (before) } { "Earlier runs" } }
                @if !self.is_last { a class="button" href=(path) { "Newest runs" } }
            }))
        })
    }

    fn table(&self) -> Markup {
        html! {
            div class="scroll" tabindex="0" role="region" aria-label="Runs" {
                table {
                    thead {
                        tr {
                            th scope="col" { "Run" }
                            th scope="col" { "Agent" }
                            th scope="col" { "Status" }
                            th scope="col" class="wide" { "Started" }
                            th scope="col" class="number" { "Took" }
                            th scope="col" class="number wide" { "Steps" }
                            th scope="col" class="number wide" { "Tokens" }
                            th scope="col" class="wide" { "Tools" }
                            th scope="col" class="wide" { "Chat" }
                        }
                    }
                    tbody { @for run in self.runs { (self.row(run)) } }
                }
            }
        }
    }

    fn row(&self, run: &TimelineRun) -> Markup {
        let execution = &run.reaction.execution;
        let (state, words) = execution_state(&run.reaction, run.is_waiting);
        let n_waiting = run.reaction.open_calls().len();
        let agent = agent_of(execution);
        html! {
            tr {
                th scope="row" {
                    a href=(run_path(self.thread_key, execution.id.as_str())) dir="auto" { (trigger_words(run.trigger.as_ref(), execution.follows_handoff())) }
                }
                td dir="auto" { (json::visible(agent.as_deref().unwrap_or(UNNAMED))) }
                td {
                    @if run.is_waiting { (badge((state, &format!("{words} for {}", counted(n_waiting, "answer"))))) }
                    @else { (badge((state, words))) }
                }
                td class="wide" { (time::instant(execution.created_at)) }
                td class="number" { (time::between(execution.created_at, run.reaction.ended_at.unwrap_or(self.now))) }
                td class="number wide" { (run.reaction.steps.len()) }
                td class="number wide" { (CountedTokens::of(&run.reaction).total()) }
                td class="wide" { (tools(&run.reaction)) }
                td class="wide" {
                    @if let Some(seq) = run.seq {
                        a href=(at_path(self.thread_key, seq)) { "at event " (seq) }
                    } @else { span class="quiet" { "in the parent" } }
                }
            }
        }
    }
}

/// The trigger of a run in words.
pub(super) fn trigger_words(trigger: Option<&Item>, is_handoff: bool) -> Markup {
    let text = trigger
        .and_then(|item| item.content.as_ref())
        .map(message_text);
    let text = text.map(|text| json::line(&text, TRIGGER));
    let item_type = trigger.map(|item| item.item_type);
    html! {
        @match text {
            _ if is_handoff => "handed over",
            Some(text) if !text.is_empty() => (text),
            _ if item_type == Some(ItemType::ActionResult) => "answers to calls",
            Some(_) => "message without text",
            None => "message",
        }
    }
}

/// The tools that a run called, with the number of calls.
fn tools(reaction: &Reaction) -> Markup {
    let mut counts: Vec<(String, usize)> = Vec::new();
    let parts = reaction.steps.iter().flat_map(|step| &step.parts);
    for tool in parts.filter_map(|part| ToolPart::read(&part.part)) {
        match counts.iter_mut().find(|(name, _)| name == tool.tool_name()) {
            Some((_, count)) => *count += 1,
            None => counts.push((tool.tool_name().to_owned(), 1)),
        }
    }
    html! {
        @for (at, (name, count)) in counts.iter().enumerate() {
            @if at > 0 { ", " }
            code { (json::visible(name)) }
            @if *count > 1 { " ×" (count) }
        }
    }
}
