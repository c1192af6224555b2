//! Calls of tools, and what is told of them.

use super::{Play, request};
use futures_util::future::BoxFuture;
use loomline_upp::{
    ArgumentsError, AssistantContent, Message, MessageOptions, Request, Response, StopReason,
    StreamEvent, Tool, ToolCallId, ToolContext, ToolOutput, ToolResult, ToolResultMessage,
};
use serde_json::{Value, json};
use std::sync::Arc;

impl Play {
    pub(super) async fn parallel_tools(&self) {
        let mut next = request("do both");
        next.tools = tools();
        let (_, response) = self.ask(next.clone()).await.unwrap();
        assert_eq!(response.stop_reason, StopReason::ToolUse);
        let [add, echo] = response.message.tool_calls.as_slice() else {
            panic!("two calls: {:?}", response.message.tool_calls)
        };
        assert_eq!((&*add.tool_name, &*echo.tool_name), ("add", "echo"));
        assert_ne!(add.tool_call_id, echo.tool_call_id);
        assert_eq!(add.arguments.parse().unwrap(), json!({"a": 1, "b": 2}));
        assert_eq!(echo.arguments.parse().unwrap(), json!({"text": "x"}));
        let results = ToolResultMessage::new(
            vec![
                result(&add.tool_call_id.clone(), json!(3), false),
                result(&echo.tool_call_id.clone(), json!("x"), false),
            ],
            MessageOptions::default(),
        );
        let response = self.go_on(next, response, results).await;
        assert_eq!(response.message.joined_text(), "3 and x");
    }

    pub(super) async fn tool_error(&self) {
        let mut next = request("add");
        next.tools = tools();
        let (_, response) = self.ask(next.clone()).await.unwrap();
        let id = response.message.tool_calls[0].tool_call_id.clone();
        let results = ToolResultMessage::new(
            vec![result(&id, json!("out of order"), true)],
            MessageOptions::default(),
        );
        let response = self.go_on(next, response, results).await;
        assert_eq!(response.message.joined_text(), "sorry");
    }

    pub(super) async fn cut_call(&self) {
        let mut next = request("add");
        next.tools = tools();
        let (_, response) = self.ask(next.clone()).await.unwrap();
        assert_eq!(response.stop_reason, StopReason::MaxTokens);
        let [add] = response.message.tool_calls.as_slice() else {
            panic!("one call: {:?}", response.message.tool_calls)
        };
        assert_eq!(&*add.tool_name, "add");
        let read = add.arguments.parse();
        assert!(matches!(read, Err(ArgumentsError::CutOff(_))), "{read:?}");
        // The conversation goes on with what the model is told of it.
        let results = ToolResultMessage::new(
            vec![result(&add.tool_call_id.clone(), json!("cut off"), true)],
            MessageOptions::default(),
        );
        let response = self.resume(next, response, results).await;
        assert_eq!(response.message.joined_text(), "sorry");
        let omitted = &response.request.as_ref().unwrap().report.omitted;
        assert!(omitted.iter().all(|it| it.what == "arguments"));
    }

    /// The next request of a tool round; it begins with the bytes of the one before it.
    async fn go_on(
        &self,
        next: Request,
        response: Response,
        results: ToolResultMessage,
    ) -> Response {
        let response = self.resume(next, response, results).await;
        assert_eq!(response.request.as_ref().unwrap().report.omitted, []);
        response
    }

    async fn resume(
        &self,
        mut next: Request,
        response: Response,
        results: ToolResultMessage,
    ) -> Response {
        next.previous = response.request.as_ref().map(|sent| sent.prefix.clone());
        next.messages.push_back_mut(response.message.into());
        next.messages.push_back_mut(results.into());
        let (_, response) = self.ask(next).await.unwrap();
        let report = &response.request.as_ref().unwrap().report;
        assert_eq!(report.cache_break, None);
        response
    }

    pub(super) async fn reasoning(&self) {
        let mut next = request("add");
        next.tools = tools();
        let (events, response) = self.ask(next.clone()).await.unwrap();
        let thought: String = events
            .iter()
            .filter_map(|event| match event {
                StreamEvent::ReasoningDelta { text, .. } => Some(text.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(thought, "let me think");
        assert!(
            response
                .message
                .content
                .iter()
                .any(|block| matches!(block, AssistantContent::Reasoning { .. }))
        );
        // Through the store and back.
        let text = serde_json::to_string(&Message::from(response.message.clone())).unwrap();
        let Message::Assistant(stored) = serde_json::from_str(&text).unwrap() else {
            panic!("another kind")
        };
        let response = Response {
            message: (*stored).clone(),
            ..response
        };
        let id = response.message.tool_calls[0].tool_call_id.clone();
        let results = ToolResultMessage::new(
            vec![result(&id, json!(3), false)],
            MessageOptions::default(),
        );
        let response = self.go_on(next, response, results).await;
        assert_eq!(response.message.joined_text(), "3");
    }
}

fn result(id: &ToolCallId, result: Value, is_error: bool) -> ToolResult {
    ToolResult {
        tool_call_id: id.clone(),
        result: result.into(),
        is_error,
    }
}

pub(super) fn tools() -> Arc<[Tool]> {
    let never = |_: Value, _: ToolContext| {
        Box::pin(std::future::ready(ToolOutput::Ok(Value::Null))) as BoxFuture<'static, ToolOutput>
    };
    let number = json!({"type": "integer"});
    let schema = |properties: Value, required: Value| json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false});
    let add = schema(json!({"a": number, "b": number}), json!(["a", "b"]));
    let echo = schema(json!({"text": {"type": "string"}}), json!(["text"]));
    [
        Tool::new("add", "Adds two numbers.", add, never),
        Tool::new("echo", "Says it again.", echo, never),
    ]
    .into()
}
