//! Middleware that keeps a conversation short (UAP §6.2).

mod laws;
mod prune;
mod summarise;
mod window;

use crate::support::*;
use loomline_agents::middleware::{Estimate, PruneToolOutputs, SlidingWindow, Summarise};
use loomline_agents::{AgentState, Middleware, MiddlewareContext};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::num::NonZeroUsize;
use std::sync::Arc;
use upp::{
    AssistantMessage, Message, MessageOptions, Scripted, ToolResultMessage, UserContent,
    UserMessage,
};

fn id(text: &str) -> MessageOptions {
    MessageOptions {
        id: Some(text.into()),
        ..MessageOptions::default()
    }
}

/// Messages by their kinds: `u` input, `p` prompt of a strategy, `a` answer, `c` two calls, `r` their
/// results, `h` and `g` one of them each, `s` summary. The id of each is its kind and place.
fn history(kinds: &str) -> AgentState {
    let messages = kinds.char_indices().map(|(at, kind)| {
        let name = format!("{kind}{at}");
        let calls = |of: usize| [format!("{of}x"), format!("{of}y")];
        let text = UserContent::Text { text: name.clone() };
        match kind {
            'u' => UserMessage::new(vec![text], id(&name)).into(),
            's' => {
                let mut message = UserMessage::new(vec![text], id(&name));
                let note = json!({"summary": {"of": ["first", "last"]}});
                message.metadata.insert("uap".to_owned(), note);
                message.into()
            }
            'p' => {
                let mut message = UserMessage::new(vec![text], id(&name));
                let mark = json!({"prompt": "plan_step", "step": 1, "firstStep": 1});
                message.metadata.insert("uap".to_owned(), mark);
                message.into()
            }
            'a' => {
                let mut message = said(&name);
                message.id = name.as_str().into();
                message.into()
            }
            'c' => {
                let calls = calls(at).map(|id| call(&id, "tool", &[])).into();
                AssistantMessage::new(Vec::new(), calls, id(&name)).into()
            }
            _ => {
                let mut results: Vec<_> = calls(if kind == 'g' { at - 2 } else { at - 1 })
                    .map(|id| result(&id, "output ".repeat(20)))
                    .into();
                match kind {
                    'h' => drop(results.pop()),
                    'g' => drop(results.remove(0)),
                    _ => {}
                }
                Message::from(ToolResultMessage::new(results, id(&name)))
            }
        }
    });
    AgentState::initial().with_messages(messages)
}

fn ids(state: &AgentState) -> Vec<&str> {
    state
        .messages()
        .iter()
        .map(|message| message.id().as_str())
        .collect()
}

async fn before(layer: &dyn Middleware, state: AgentState) -> AgentState {
    let mut context = MiddlewareContext {
        agent: agent(options(Arc::new(Scripted::new()))),
        input: "next".into(),
        state,
        metadata: serde_json::Map::new(),
    };
    layer.before(&mut context).await.unwrap();
    context.state
}

fn now(layer: &dyn Middleware, state: AgentState) -> AgentState {
    futures_util::FutureExt::now_or_never(before(layer, state)).unwrap()
}

fn window(max: usize) -> SlidingWindow {
    SlidingWindow::new(NonZeroUsize::new(max).unwrap())
}

/// Each message counts ten.
fn tens() -> Estimate {
    Estimate::new(|_| 10)
}

fn prune(usable: u64, protect_recent: u64) -> PruneToolOutputs {
    PruneToolOutputs {
        usable,
        protect_recent,
        placeholder: "[gone]".to_owned(),
        estimate: tens(),
    }
}

fn summarise(model: Arc<dyn upp::Model>) -> Summarise {
    Summarise {
        threshold: 30,
        keep_recent: 2,
        estimate: tens(),
        ..Summarise::with_model(model)
    }
}

/// Every call has its results right behind it, in one message or several, and no results are without
/// calls. The last calls may be open.
fn is_sound(messages: &[Message]) -> bool {
    let mut open = Vec::new();
    messages.iter().all(|message| match message {
        Message::User(_) => open.is_empty(),
        Message::Assistant(message) => {
            let was_open = !open.is_empty();
            let calls = message.tool_calls.iter();
            open = calls.map(|call| call.tool_call_id.clone()).collect();
            !was_open
        }
        Message::ToolResult(message) => message.results.iter().all(|result| {
            let at = open.iter().position(|id| *id == result.tool_call_id);
            at.map(|at| open.remove(at)).is_some()
        }),
    })
}

fn list(state: &AgentState) -> Vec<Message> {
    state.messages().iter().cloned().collect()
}
