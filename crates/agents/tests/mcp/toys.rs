//! An MCP server made with the official SDK, for tests. The state is shared by all its sessions.

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData,
    InputRequiredResult, JsonObject, ListToolsResult, PaginatedRequestParams,
    ProgressNotificationParam, ServerCapabilities, ServerConfig, SubscriptionFilter, Tool,
    ToolAnnotations,
};
use rmcp::service::{RequestContext, RoleServer, SubscriptionContext};
use rmcp::{Peer, ServerHandler};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tokio::sync::watch;

/// The smallest picture there is, a GIF of one pixel.
pub(crate) const PICTURE: &str = "R0lGODlhAQABAAAAACH5BAEKAAEALAAAAAABAAEAAAICTAEAOw==";

/// The server.
#[derive(Clone)]
pub(crate) struct Toys(Arc<State>);

struct State {
    /// Tools beyond the usual.
    grown: watch::Sender<u32>,
    n_cancelled: watch::Sender<u32>,
    go: watch::Sender<bool>,
    n_flaky: AtomicU32,
}

impl Toys {
    /// A server nobody has used.
    pub(crate) fn new() -> Self {
        Self(Arc::new(State {
            grown: watch::Sender::new(0),
            n_cancelled: watch::Sender::new(0),
            go: watch::Sender::new(false),
            n_flaky: AtomicU32::new(0),
        }))
    }

    fn tools(&self) -> Vec<Tool> {
        let any = || object(json!({"type": "object"}));
        let mut tools = vec![
            Tool::new(
                "echo",
                "Says it again.",
                object(json!({
                    "type": "object",
                    "properties": {"text": {"type": "string"}},
                    "required": ["text"],
                })),
            )
            .with_title("Echo")
            .with_annotations(ToolAnnotations::new().read_only(true)),
            Tool::new("add", "Adds.", any())
                .with_annotations(ToolAnnotations::new().idempotent(true))
                .with_raw_output_schema(Arc::new(object(json!({
                    "type": "object",
                    "properties": {"sum": {"type": "number"}},
                    "required": ["sum"],
                })))),
        ];
        let others = [
            "two_texts",
            "picture",
            "mixed",
            "fail",
            "big",
            "steps",
            "go",
            "slow",
            "await_cancellation",
            "environment",
            "pid",
            "die",
            "die_once",
            "flaky",
            "grow",
            "curious",
            "forbidden",
        ];
        tools.extend(others.map(|name| Tool::new(name, "A toy.", any())));
        let n_grown = *self.0.grown.borrow();
        tools.extend((0..n_grown).map(|at| Tool::new(format!("grown_{at}"), "New.", any())));
        tools
    }

    async fn steps(&self, context: &RequestContext<RoleServer>) -> CallToolResult {
        let token = context.meta.get_progress_token().unwrap();
        let half = ProgressNotificationParam::new(token, 1.0)
            .with_total(2.0)
            .with_message("half");
        context.peer.notify_progress(half).await.unwrap();
        let mut go = self.0.go.subscribe();
        go.wait_for(|go| *go).await.unwrap();
        text("done")
    }

    async fn grow(&self, peer: &Peer<RoleServer>) -> CallToolResult {
        self.0.grown.send_modify(|n_grown| *n_grown += 1);
        // Where the client has subscribed this is not wanted; it is told below.
        let _ = peer.notify_tool_list_changed().await;
        text("grown")
    }

    async fn slow(&self, context: &RequestContext<RoleServer>) -> CallToolResult {
        context.ct.cancelled().await;
        self.0.n_cancelled.send_modify(|n| *n += 1);
        text("too late")
    }
}

impl ServerHandler for Toys {
    fn get_info(&self) -> ServerConfig {
        let offered = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .build();
        ServerConfig::new(offered)
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(requested.supported_by(&self.get_info().capabilities))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut grown = self.0.grown.subscribe();
        loop {
            tokio::select! {
                () = context.cancelled() => return Ok(()),
                _ = grown.changed() => {
                    let _ = context.sink().notify_tool_list_changed().await;
                }
            }
        }
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        // Two pages, so that a client has to turn one.
        let mut first = self.tools();
        let second = first.split_off(3);
        let turned = request.is_some_and(|page| page.cursor.is_some());
        let mut list = ListToolsResult::with_all_items(if turned { second } else { first });
        list.next_cursor = (!turned).then(|| "second".to_owned());
        Ok(list)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        Ok(match request.name.as_ref() {
            "echo" => text(arguments["text"].as_str().unwrap_or_default()),
            "two_texts" => {
                CallToolResult::success(vec![ContentBlock::text("one"), ContentBlock::text("two")])
            }
            "add" => match (arguments["a"].as_f64(), arguments["b"].as_f64()) {
                (Some(a), Some(b)) => CallToolResult::structured(json!({"sum": a + b})),
                _ => CallToolResult::structured(json!({"sum": "none"})),
            },
            "picture" => CallToolResult::success(vec![
                ContentBlock::text("a dot"),
                ContentBlock::image(PICTURE, "image/gif"),
            ]),
            "mixed" => {
                let mut result =
                    CallToolResult::success(vec![ContentBlock::image(PICTURE, "image/gif")]);
                result.structured_content = Some(json!({"width": 1}));
                result
            }
            "fail" => CallToolResult::error(vec![ContentBlock::text("no such file")]),
            "big" => {
                let n_bytes = arguments["bytes"].as_u64().unwrap();
                text(&"x".repeat(usize::try_from(n_bytes).unwrap()))
            }
            "steps" => self.steps(&context).await,
            "go" => {
                self.0.go.send_replace(true);
                text("going")
            }
            "slow" => self.slow(&context).await,
            "await_cancellation" => {
                let mut n_cancelled = self.0.n_cancelled.subscribe();
                n_cancelled.wait_for(|n| *n > 0).await.unwrap();
                text("the call was cancelled")
            }
            "environment" => {
                let names = std::env::vars_os().map(|(name, _)| name.into_string().unwrap());
                CallToolResult::structured(json!({"names": names.collect::<Vec<_>>()}))
            }
            "pid" => text(&std::process::id().to_string()),
            "die" => std::process::exit(3),
            "die_once" => {
                let marker = arguments["marker"].as_str().unwrap();
                if !std::fs::exists(marker).unwrap() {
                    std::fs::write(marker, "").unwrap();
                    std::process::exit(4);
                }
                text("alive again")
            }
            "flaky" => {
                let n_before = self.0.n_flaky.fetch_add(1, Ordering::SeqCst);
                text(&n_before.to_string())
            }
            "grow" => self.grow(&context.peer).await,
            "curious" => return Ok(InputRequiredResult::from_request_state("who are you?").into()),
            name if name.starts_with("grown_") => text("new"),
            name => {
                let what = format!("there is no {name}");
                return Err(ErrorData::invalid_params(what, None));
            }
        }
        .into())
    }
}

fn text(text: &str) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}

fn object(value: Value) -> JsonObject {
    serde_json::from_value(value).unwrap()
}
