//! A model that answers from a list, and tools.

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt, stream};
use loomline_upp::{
    Arguments, AssistantMessage, Capabilities, CycleUsage, LlmOptions, Messages, Model, ModelEvent,
    ModelStream, Request, Response, StopReason, StreamEvent, Tool, ToolCall, ToolContext,
    ToolOutput,
};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

/// Answers from a list and keeps the requests. Without an answer, it never ends.
pub(crate) struct Listed {
    can: Capabilities,
    answers: Mutex<VecDeque<Response>>,
    pub(crate) requests: Mutex<Vec<Request>>,
}

impl Listed {
    pub(crate) fn new(can: Capabilities, answers: impl IntoIterator<Item = Response>) -> Arc<Self> {
        Arc::new(Self {
            can,
            answers: Mutex::new(answers.into_iter().collect()),
            requests: Mutex::new(Vec::new()),
        })
    }

    pub(crate) fn request(&self, at: usize) -> Request {
        self.requests.lock().expect("unpoisoned")[at].clone()
    }
}

impl Model for Listed {
    fn model_id(&self) -> &'static str {
        "listed"
    }

    fn provider(&self) -> &'static str {
        "test"
    }

    fn capabilities(&self) -> Capabilities {
        self.can
    }

    fn stream(&self, request: Request) -> ModelStream {
        self.requests.lock().expect("unpoisoned").push(request);
        let Some(answer) = self.answers.lock().expect("unpoisoned").pop_front() else {
            let start = ModelEvent::Event(StreamEvent::MessageStart);
            return stream::iter([Ok(start)]).chain(stream::pending()).boxed();
        };
        let events = [StreamEvent::MessageStart, StreamEvent::MessageStop].map(ModelEvent::Event);
        let done = ModelEvent::Done(Box::new(answer));
        stream::iter(events.into_iter().chain([done]))
            .map(Ok)
            .boxed()
    }
}

pub(crate) fn answer(text: &str, calls: &[(&str, &str)]) -> Response {
    let calls = calls.iter().map(|(id, name)| ToolCall {
        tool_call_id: (*id).into(),
        tool_name: (*name).into(),
        arguments: Arguments::from_text("{}"),
        after: Vec::new(),
    });
    let mut message = AssistantMessage::text(text);
    message.tool_calls = calls.collect();
    Response {
        message,
        usage: CycleUsage {
            input_tokens: 1,
            output_tokens: 2,
            cache_read_tokens: 3,
            cache_write_tokens: 4,
            ..CycleUsage::default()
        },
        stop_reason: StopReason::EndTurn,
        data: None,
        model_id: "listed".into(),
        provider: "test".into(),
        response_id: None,
        request: None,
    }
}

pub(crate) fn options(model: &Arc<Listed>) -> LlmOptions {
    LlmOptions::new(Arc::clone(model) as _)
}

pub(crate) fn tool<F>(name: &str, run: impl Fn(ToolContext) -> F + Send + Sync + 'static) -> Tool
where
    F: Future<Output = ToolOutput> + Send + 'static,
{
    let schema = json!({"type": "object"});
    Tool::new(
        name,
        "",
        schema,
        move |_: Value, context: ToolContext| -> BoxFuture<'static, ToolOutput> {
            run(context).boxed()
        },
    )
}

pub(crate) fn none() -> Messages {
    Messages::new()
}
