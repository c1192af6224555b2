//! The page of one run: its waterfall, its steps, and the thread as it was.

use super::console_run::ConsoleRun;
use super::event_text::event_text;
use super::frame::ConsoleFrame;
use super::step_details::step_details;
use super::timeline::trigger_words;
use super::waterfall;
use crate::chat::interruption_words;
use crate::elements::{badge, fact, short_text, travel};
use crate::execution::{CountedTokens, execution_state};
use crate::json;
use crate::link::{event_path, run_path};
use crate::time;
use jiff::Timestamp;
use maud::{Markup, html};
use timeline::{Interruption, Record};

/// An event of the thread at which a reader looks.
#[derive(Clone, Copy, Debug)]
pub struct EventPoint<'a> {
    /// The event.
    pub record: &'a Record,
    /// The last event of the thread.
    pub tail: u64,
    /// Whether the reader may fork the thread there: no run works at the event.
    pub is_forkable: bool,
}

/// The page of a run.
#[derive(Debug)]
pub struct RunPage<'a> {
    /// The frame of the page.
    pub frame: ConsoleFrame<'a>,
    /// The run.
    pub run: ConsoleRun<'a>,
    /// The event at which the reader looks; absent for a run that is in the log of another thread.
    pub point: Option<EventPoint<'a>>,
    /// Whether the reader may fork threads.
    pub may_write: bool,
    /// The instant at which it was drawn.
    pub now: Timestamp,
}

impl RunPage<'_> {
    /// The page as HTML.
    pub fn html(&self) -> Markup {
        let rows = waterfall::rows(&self.run);
        let step_times = self.run.step_times();
        self.frame.html(&html! {
            h2 { "Run of " bdi { (json::visible(&self.run.agent())) } }
            (self.facts())
            h2 { "Times" }
            (waterfall::table(&rows, self.now))
            (self.replay())
            h2 { "Steps" }
            @if self.run.reaction.steps.is_empty() {
                p class="quiet" { "The run has no step: it ended before it called the model." }
            }
            @for (at, record) in self.run.reaction.steps.iter().enumerate() {
                (step_details(&self.run, (at, record), step_times.get(&record.step.id).copied()))
            }
        })
    }

    fn facts(&self) -> Markup {
        let run = &self.run;
        let execution = &run.reaction.execution;
        let (state, words) = execution_state(run.reaction, run.is_waiting);
        let tokens = CountedTokens::of(run.reaction);
        let ended = run.reaction.ended_at;
        let queued = run.trigger.created_at;
        let trigger = trigger_words(Some(run.trigger), execution.follows_handoff());
        html! {
            dl class="facts run" {
                (fact("Status", &html! { (badge((state, words))) }))
                (fact("Responds to", &html! { span dir="auto" { (trigger) } }))
                (fact("Took", &html! {
                    (time::between(execution.created_at, ended.unwrap_or(self.now)))
                    @if ended.is_none() { " so far" }
                }))
                (fact("Tokens", &html! { (tokens.input_tokens) " in, " (tokens.output_tokens) " out" }))
                (fact("Started", &html! { (time::instant(execution.created_at)) }))
                @if let Some(ended) = ended { (fact("Ended", &time::instant(ended))) }
                @if execution.created_at > queued { (fact("Waited before", &html! { (time::between(queued, execution.created_at)) })) }
                (fact("Execution", &html! { code { (json::visible(execution.id.as_str())) } }))
                @if let Some(why) = &execution.interruption { (fact("Ended early", &interruption(why))) }
                @if let Some(next) = run.continuation {
                    (fact("Continues", &html! { a href=(run_path(run.thread_key, &next.execution_id)) { "in the next run" } }))
                }
                @if let Some(seq) = run.seq { (fact("Log", &html! { a href=(event_path(run.thread_key, seq)) { "from event " (seq) } })) }
            }
        }
    }

    /// The control that steps through the thread event by event.
    fn replay(&self) -> Markup {
        let key = self.run.thread_key;
        let execution = self.run.reaction.execution.id.as_str();
        html! {
            h2 id="replay" { "Replay" }
            @match &self.point {
                None => p class="quiet" { "The thread shares this run with the thread that it was forked from. Replay it there." },
                Some(point) => {
                    @let seq = point.record.seq.0;
                    @let path = |seq: u64| format!("{}?at={seq}#replay", run_path(key, execution));
                    div class="replay" {
                        @if seq > 1 { a class="button" href=(path(seq - 1)) rel="prev" { "Event before" } }
                        @if seq < point.tail { a class="button" href=(path(seq + 1)) rel="next" { "Event after" } }
                        p {
                            "event " (self.run.event_link(point.record.seq)) " of " (point.tail) " · "
                            (time::exact(point.record.at)) " · "
                            code { (point.record.event.event_type().name()) } " "
                            span class="quiet" dir="auto" { (event_text(&point.record.event)) }
                        }
                    }
                    div class="buttons" {
                        (travel(key, seq))
                        @if point.is_forkable { (fork(key, ("at", &seq.to_string()), &format!("Fork after event {seq}"))) }
                        @if self.may_write && self.run.reaction.ended_at.is_some() {
                            (fork(key, ("execution", execution), "Fork after the run"))
                        }
                    }
                    @if self.may_write && !point.is_forkable {
                        p class="quiet" { "A run is in progress at this event. Fork the thread before or after the run." }
                    }
                },
            }
        }
    }
}

/// The form that forks a thread.
fn fork(key: &str, (name, value): (&str, &str), words: &str) -> Markup {
    html! {
        form method="post" action="/ui/fork" {
            input type="hidden" name="thread" value=(key);
            input type="hidden" name=(name) value=(value);
            button type="submit" { (words) }
        }
    }
}

fn interruption(why: &Interruption) -> Markup {
    html! {
        span dir="auto" {
            (interruption_words(why))
            @if let Some(detail) = &why.detail { " (" (short_text(detail)) ")" }
        }
    }
}
