//! Rendering a thread for a model (2.0.0 "ThreadProtocol → Pydantic AI `ModelMessages`").
//!
//! Each agent has its own view of a thread: its own messages unchanged, and those of other agents
//! with their names. The rendering is derived on demand and never stored. It is append-only: if
//! turns are added, the messages stay the same and more follow, so a provider's prompt cache stays
//! valid. The one exception is a call without an answer: the messages after it change once the
//! answer arrives.
//!
//! Providers require an answer to each call before the next response. A valid document does not
//! guarantee that. The renderer therefore omits or changes parts and lists each such change in
//! [`Rendered::changes`].
//!
//! The messages have the frame of Pydantic AI's messages, and their parts use the protocol's names.
//! `interop::pydantic_ai::library_messages` converts those to the library's names, so that the
//! library can load them.

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

/// The messages for a model, and the list of what was omitted or changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Rendered {
    /// The messages, each an object of `parts`, `timestamp`, `kind` (`request` or `response`) and
    /// the message's other members. Parts and members use the protocol's names (`status`,
    /// `thinking_id`, custom kinds); `interop::pydantic_ai::library_messages` converts them to the
    /// form that Pydantic AI loads.
    pub messages: Vec<Json>,
    /// All omissions and changes, step by step.
    pub changes: Vec<RenderChange>,
}

/// A difference between the thread and its rendering.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenderChange {
    /// The JSON Pointer of the changed value in the thread.
    pub pointer: String,
    /// The change.
    pub what: What,
}

impl RenderChange {
    fn new(pointer: String, what: What) -> Self {
        Self { pointer, what }
    }
}

/// A difference between the thread and its rendering.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum What {
    /// A turn of an unknown type was omitted.
    UnknownTurn,
    /// A message of an unknown type was omitted.
    UnknownMessage,
    /// A system message was omitted: models never receive these.
    SystemMessage,
    /// A client's metadata was omitted: it is not for models.
    ClientMetadata,
    /// An answer that matches no call was omitted.
    OrphanAnswer,
    /// A call without an id was omitted: no answer can match it.
    CallWithoutId,
    /// A second call with the same id was omitted.
    RepeatedCall,
    /// A second answer to the same call was omitted.
    RepeatedAnswer,
    /// A thought was omitted because the model can't read it.
    ThoughtOmitted,
    /// A provider's id was omitted because its thought was.
    IdOmitted,
    /// A short text replaces content that is stored outside of the document.
    ExternalContent,
    /// A call of another agent, or its answer, was omitted.
    ToolTrafficHidden,
    /// A sentence replaces a call of another agent, or its answer.
    ToolTrafficSummarised,
    /// A text or message names the agent that wrote it.
    Attributed,
    /// A part became a quotation in a request.
    Quoted,
    /// A part was omitted because it can't be quoted.
    NotQuotable,
    /// A response with an unanswered call, or an answer to another of its calls, was omitted.
    OpenCycleDropped,
    /// A call without an answer got one that reports the interruption.
    AnsweredAsInterrupted,
    /// A pending call of the viewing agent stays open, for the caller to answer.
    PendingCallLeftOpen,
    /// An answer was moved up to the response with its call.
    AnswerMoved,
    /// A message was omitted because it became empty.
    EmptyMessage,
}

/// Renders a thread for the agent that runs next.
///
/// The result uses the protocol's names; `interop::pydantic_ai::library_messages` makes it loadable
/// by Pydantic AI.
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

/// Adds the agent's configuration (TP-8): its system prompts at the start of the first request, and
/// its instructions in every request, of which the library reads the last.
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
