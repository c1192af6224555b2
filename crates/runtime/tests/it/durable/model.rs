//! A model whose every answer follows from the conversation and a seed.

use agents::PromptMark;
use futures_util::StreamExt;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use upp::{
    Arguments, AssistantContent, AssistantMessage, Capabilities, CycleUsage, Message,
    MessageOptions, Model, ModelEvent, ModelStream, NativeSettings, Request, Response, Settings,
    StopReason, ToolCall, UserMessage,
};

/// Numbers that are the same at every run.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % (sides as u64)).unwrap()
    }
}

/// Answers by a function of the request, and remembers what it was asked.
pub(crate) struct Canned {
    answer: Box<dyn Fn(&Request) -> AssistantMessage + Send + Sync>,
    pub(crate) asked: Mutex<Vec<Vec<Message>>>,
}

impl Canned {
    pub(crate) fn new(
        answer: impl Fn(&Request) -> AssistantMessage + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self {
            answer: Box::new(answer),
            asked: Mutex::default(),
        })
    }

    /// Rounds of calls, then `done`; the k-th answer since the user spoke is the k-th round.
    pub(crate) fn rounds(rounds: Vec<Vec<ToolCall>>) -> Arc<Self> {
        Self::new(move |request| {
            let messages: Vec<&Message> = request.messages.iter().collect();
            match rounds.get(n_answers(&messages)) {
                Some(calls) => calling(calls.clone()),
                None => said("done"),
            }
        })
    }
}

impl Model for Canned {
    fn model_id(&self) -> &'static str {
        "canned-1"
    }

    fn provider(&self) -> &'static str {
        "canned"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            structured_output: true,
            tools: true,
            ..Capabilities::default()
        }
    }

    fn settings(&self, settings: &Settings) -> NativeSettings {
        let limit = settings.max_output_tokens;
        let limit = limit.map(|limit| ("max_tokens".to_owned(), json!(limit)));
        NativeSettings {
            params: limit.into_iter().collect(),
            ..NativeSettings::default()
        }
    }

    fn stream(&self, request: Request) -> ModelStream {
        let messages = request.messages.iter().cloned().collect();
        self.asked.lock().unwrap().push(messages);
        let message = (self.answer)(&request);
        let response = Response {
            message,
            usage: CycleUsage {
                input_tokens: 3,
                output_tokens: 2,
                ..CycleUsage::default()
            },
            stop_reason: StopReason::EndTurn,
            data: None,
            model_id: "canned-1".into(),
            provider: "canned".into(),
            response_id: None,
            request: None,
        };
        futures_util::stream::iter([Ok(ModelEvent::Done(Box::new(response)))]).boxed()
    }
}

pub(crate) fn said(text: &str) -> AssistantMessage {
    let block = AssistantContent::Text { text: text.into() };
    AssistantMessage::new(vec![block], Vec::new(), MessageOptions::default())
}

pub(crate) fn calling(calls: Vec<ToolCall>) -> AssistantMessage {
    AssistantMessage::new(Vec::new(), calls, MessageOptions::default())
}

pub(crate) fn call(id: &str, tool: &str) -> ToolCall {
    ToolCall {
        tool_call_id: id.into(),
        tool_name: tool.into(),
        arguments: Arguments::from_text(&format!(r#"{{"n": "{id}"}}"#)),
        after: Vec::new(),
    }
}

fn mark(message: &UserMessage) -> Option<&str> {
    PromptMark::of(message).map(|mark| mark.kind)
}

/// How often the model has answered since the user spoke.
fn n_answers(messages: &[&Message]) -> usize {
    let since = messages.iter().rev().take_while(|message| match message {
        Message::User(message) => mark(message).is_some(),
        _ => true,
    });
    since
        .filter(|message| matches!(message, Message::Assistant(_)))
        .count()
}

/// The model of a seed: rounds of calls, plans and texts, as its prompts ask for.
pub(crate) fn seeded(seed: u64, tools: &'static [&'static str]) -> Arc<Canned> {
    Canned::new(move |request| {
        let messages: Vec<&Message> = request.messages.iter().collect();
        let n_all = messages
            .iter()
            .filter(|message| matches!(message, Message::Assistant(_)))
            .count();
        let n_own = n_answers(&messages);
        let mut dice = Dice(seed.wrapping_mul(1_000).wrapping_add(n_all as u64));
        let after_results = matches!(messages.last(), Some(Message::ToolResult(_)));
        let last = messages.iter().rev().find_map(|message| match message {
            Message::User(message) => Some(mark(message)),
            _ => None,
        });
        let some_calls = |dice: &mut Dice| {
            let calls = (0..=dice.roll(3)).map(|at| {
                let tool = tools[dice.roll(tools.len())];
                call(&format!("c{n_all}-{at}"), tool)
            });
            calling(calls.collect())
        };
        match last.flatten() {
            Some("reason" | "check") => said(&format!("thought {n_all}")),
            Some("plan") => said(&plan(&mut dice, n_all, seed.is_multiple_of(2))),
            Some("replan") => said(&plan(&mut dice, n_all, false)),
            Some("plan_step") if after_results && dice.roll(3) > 0 => said("step done"),
            Some("plan_step") if after_results => some_calls(&mut dice),
            Some("plan_step") if says(&messages, "broken") => {
                calling(vec![call(&format!("c{n_all}-b"), "broken")])
            }
            Some(_) | None if n_own < 2 + dice.roll(4) => some_calls(&mut dice),
            Some(_) | None => said(&format!("done {n_all}")),
        }
    })
}

/// Whether the last prompt names this.
fn says(messages: &[&Message], word: &str) -> bool {
    let last = messages.last().map(|message| json!(message).to_string());
    last.is_some_and(|text| text.contains(word))
}

fn plan(dice: &mut Dice, n: usize, breaks: bool) -> String {
    let n_steps = 1 + dice.roll(3);
    let steps = (0..n_steps).map(|at| {
        let is_broken = breaks && at == 0;
        let what = if is_broken { "use broken" } else { "work" };
        let id = format!("s{n}-{at}");
        let what = format!("{what} {n}.{at}");
        let mut step = json!({"id": id, "description": what, "tool": null, "dependsOn": []});
        if at > 0 {
            step["dependsOn"] = json!([format!("s{n}-{}", at - 1)]);
        }
        step
    });
    json!({"steps": steps.collect::<Vec<Value>>()}).to_string()
}
