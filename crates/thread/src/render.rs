//! What a model is shown of a thread (2.0.0 "ThreadProtocol → Pydantic AI `ModelMessages`").
//!
//! A thread is one; each agent sees it its own way: its own messages as they were, those of the
//! others attributed. The rendering is derived whenever it is needed and never stored. It is
//! append-only: a thread with more turns renders to the same messages and some more, so that a
//! provider's prompt cache holds. Only a call that has no answer yet changes what follows it once
//! the answer is there.
//!
//! Every provider wants each call answered before the next response. What a valid document does
//! not promise in this, the renderer sees to, and says so: everything that is left out or altered
//! is in [`Rendered::changes`].
//!
//! The messages are framed as Pydantic AI's are, and the parts in them stand in the protocol's own
//! words. `interop::pydantic_ai::library_messages` puts those into the library's, which then loads
//! them.

mod alter;
mod author;
mod draft;
mod marker;
mod open_calls;
mod options;
mod pairs;
mod quote;
mod tools;

pub use marker::{MarkerStripper, strip_markers};
pub use options::{RenderOptions, SpeakerAttribution, TargetModel, ToolTraffic, Unanswered};

use crate::cycles::pending_tool_calls;
use crate::document::Thread;
use crate::json::{Json, Object};
use author::Authors;
use draft::{Draft, Kind, drafts};
use pairs::Pairs;

/// What a model is shown, and what of the thread it is not shown as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Rendered {
    /// The messages, each an object of `parts`, `timestamp`, `kind` (`request` or `response`) and
    /// what else the message has. Parts and members are in the protocol's words (`status`,
    /// `thinking_id`, kinds of one's own); `interop::pydantic_ai::library_messages` makes of them
    /// what Pydantic AI loads.
    pub messages: Vec<Json>,
    /// Everything that was left out or altered, step by step.
    pub changes: Vec<RenderChange>,
}

/// Something that a model is not shown as the thread has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenderChange {
    /// The JSON Pointer of it in the thread.
    pub pointer: String,
    /// What became of it.
    pub what: What,
}

impl RenderChange {
    fn new(pointer: String, what: What) -> Self {
        Self { pointer, what }
    }
}

/// What became of something that a model is not shown as the thread has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum What {
    /// A turn of an unknown type was left out.
    UnknownTurn,
    /// A message of an unknown type was left out.
    UnknownMessage,
    /// A system message was left out: no model saw it.
    SystemMessage,
    /// A client's metadata was left out: it is for no model.
    ClientMetadata,
    /// An answer to no call was left out.
    OrphanAnswer,
    /// A call without an id was left out: no answer can reach it.
    CallWithoutId,
    /// A second call with the same id was left out.
    RepeatedCall,
    /// A second answer to the same call was left out.
    RepeatedAnswer,
    /// A thought was left out, since the model can't read it.
    ThoughtOmitted,
    /// A provider's id was left out, since it belongs with a thought that was.
    IdOmitted,
    /// A short text stands for content that is kept elsewhere.
    ExternalContent,
    /// A call or an answer of another agent was left out.
    ToolTrafficHidden,
    /// A call or an answer of another agent is told of in a sentence.
    ToolTrafficSummarised,
    /// A text or message names the agent that wrote it.
    Attributed,
    /// A part stands as a quotation in a request.
    Quoted,
    /// A part was left out, since it can't be quoted.
    NotQuotable,
    /// A response with an unanswered call, or an answer to another of its calls, was left out.
    OpenCycleDropped,
    /// A call without an answer got one that says so.
    AnsweredAsInterrupted,
    /// A pending call of the viewing agent was left open, for the caller to answer.
    PendingCallLeftOpen,
    /// An answer was moved up to the response with its call.
    AnswerMoved,
    /// A message was left out, since nothing of it was left.
    EmptyMessage,
}

/// Renders a thread for the agent that is to speak next.
///
/// The result is in the protocol's own words; `interop::pydantic_ai::library_messages` makes it
/// loadable by Pydantic AI.
///
/// ```
/// use loomline_thread::Thread;
/// use loomline_thread::render::{RenderOptions, render};
///
/// let thread = Thread::decode(
///     r#"{"version":"0.0.4","agents":{"a":{"agent_name":"Ada"},"b":{"agent_name":"Bo"}},"turns":[
///     {"turn_type":"user","submitted_at":"2026-01-05T08:00:00Z",
///      "parts":[{"part_kind":"user-prompt","content":"Hello?"}]},
///     {"turn_type":"agent","agent_id":"a","messages":[{"message_type":"response",
///      "timestamp":"2026-01-05T08:00:01Z","agent_id":"a",
///      "parts":[{"part_kind":"text","content":"Hi."}]}]}]}"#,
/// )?;
/// let rendered = render(&thread, &RenderOptions::new("b"));
/// assert_eq!(
///     rendered.messages[1].to_text(),
///     r#"{"parts":[{"part_kind":"text","content":"{agent:Ada}: Hi."}],"timestamp":"2026-01-05T08:00:01Z","kind":"response"}"#
/// );
/// # Ok::<(), loomline_thread::DecodeError>(())
/// ```
pub fn render(thread: &Thread, options: &RenderOptions) -> Rendered {
    let authors = Authors::new(thread, &options.agent_id);
    let pairs = Pairs::read(thread, &authors);
    let mut changes = Vec::new();
    let mut drafts = drafts(thread, &authors, &pairs, &mut changes);
    drafts.retain_mut(|draft| {
        let was_empty = draft.parts.is_empty();
        alter(draft, &pairs, options, &mut changes);
        let stays = was_empty || !draft.parts.is_empty();
        if !stays {
            changes.push(RenderChange::new(draft.pointer(), What::EmptyMessage));
        }
        stays
    });
    if options.attribution == SpeakerAttribution::QuotedInUserMessage {
        drafts = quote::quote(drafts, &mut changes);
    }
    let pending = pending_tool_calls(thread);
    let pending = pending
        .iter()
        .map(|call| (call.turn, Some(call.message), call.part));
    let mut drafts =
        open_calls::close_open_calls(drafts, options.unanswered, &pending.collect(), &mut changes);
    configure(&mut drafts, options);
    Rendered {
        messages: drafts.into_iter().map(Draft::into_json).collect(),
        changes,
    }
}

fn alter(
    draft: &mut Draft<'_>,
    pairs: &Pairs<'_>,
    options: &RenderOptions,
    changes: &mut Vec<RenderChange>,
) {
    alter::drop_unpaired(draft, changes);
    alter::drop_thoughts(draft, options.target.as_ref(), changes);
    alter::name_content(draft, changes);
    match options.tool_traffic {
        ToolTraffic::Show => {}
        ToolTraffic::Summarise => tools::summarise(draft, pairs, changes),
        ToolTraffic::Hide => tools::hide(draft, changes),
    }
    match options.attribution {
        SpeakerAttribution::Prefix => alter::prefix_texts(draft, changes),
        SpeakerAttribution::NameField => alter::name_author(draft, changes),
        SpeakerAttribution::QuotedInUserMessage => {}
    }
}

/// Puts what the agent is configured with back in (TP-8): its system prompts at the start of the
/// first request, its instructions into every request, of which the library reads the last.
fn configure(drafts: &mut Vec<Draft<'_>>, options: &RenderOptions) {
    if !options.system_prompts.is_empty()
        && let Some(first) = drafts.first()
    {
        let timestamp = first.timestamp.clone();
        if first.kind == Kind::Response {
            let place = first.location;
            drafts.insert(0, Draft::request(place, timestamp.clone(), Vec::new()));
        }
        let at = (0, None, 0);
        let prompts = options.system_prompts.iter();
        let prompts = prompts.map(|prompt| draft::DraftPart {
            json: system_prompt(prompt, timestamp.clone()),
            at,
            link: None,
        });
        if let Some(first) = drafts.first_mut() {
            first.parts.splice(0..0, prompts);
        }
    }
    if let Some(instructions) = &options.instructions {
        let requests = drafts
            .iter_mut()
            .filter(|draft| draft.kind == Kind::Request);
        requests.for_each(|draft| {
            draft.rest.insert("instructions", instructions.as_str());
        });
    }
}

fn system_prompt(prompt: &Json, timestamp: Option<Json>) -> Json {
    match prompt.as_str() {
        Some(content) => Object::new()
            .with("part_kind", "system-prompt")
            .with("content", content)
            .with_some("timestamp", timestamp)
            .into(),
        None => prompt.clone(),
    }
}
