//! Agents whose answers are drawn, and tools of each kind.

use crate::link::Life;
use crate::world::{Habit, World};
use agents::{Agent, AgentOptions, SubAgentTool, subagent_tool};
use futures_util::{FutureExt, StreamExt};
use serde_json::{Value, json};
use std::sync::Arc;
use upp::{
    Arguments, AssistantContent, AssistantMessage, Capabilities, CycleUsage, Effect, Message,
    MessageOptions, Model, ModelEvent, ModelStream, NativeSettings, Request, Response, Settings,
    StopReason, StreamEvent, Tool, ToolCall, ToolContext,
};

/// The process that an agent runs in.
#[derive(Clone)]
pub(crate) struct Process {
    pub(crate) world: Arc<World>,
    pub(crate) life: Arc<Life>,
    pub(crate) place: usize,
}

impl Process {
    async fn pause(&self, up_to_ms: u64) {
        self.life.pass().await;
        // At the end nothing takes long.
        let up_to_ms = if self.world.is_calm() {
            up_to_ms.min(50)
        } else {
            up_to_ms
        };
        self.world.pause(up_to_ms).await;
        self.life.pass().await;
    }
}

/// A model that draws its answers.
struct Drawn {
    process: Process,
    /// The tools that it may call.
    calls: &'static [&'static str],
    /// How often it calls tools, in permille.
    often: u64,
}

impl Drawn {
    fn answer(&self, request: &Request) -> AssistantMessage {
        let world = &self.process.world;
        let messages: Vec<&Message> = request.messages.iter().collect();
        let since = messages
            .iter()
            .rev()
            .take_while(|it| !matches!(it, Message::User(_)));
        let n_rounds = since
            .filter(|it| matches!(it, Message::Assistant(_)))
            .count();
        if n_rounds < 2 && !self.calls.is_empty() && world.happens(self.often) {
            let n = 1 + world.roll(2);
            let calls = (0..n).map(|_| {
                let tool = world.pick(self.calls);
                ToolCall {
                    tool_call_id: world.mint("call").as_str().into(),
                    tool_name: tool.into(),
                    arguments: Arguments::from_text(r#"{"task": "work"}"#),
                    after: Vec::new(),
                }
            });
            return AssistantMessage::new(Vec::new(), calls.collect(), MessageOptions::default());
        }
        let name = world.mint("text");
        let words = (0..=world.roll(5)).map(|n| format!("{name}.{n} "));
        let text = AssistantContent::Text {
            text: words.collect(),
        };
        AssistantMessage::new(vec![text], Vec::new(), MessageOptions::default())
    }
}

impl Model for Drawn {
    fn model_id(&self) -> &'static str {
        "drawn"
    }

    fn provider(&self) -> &'static str {
        "sim"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            streaming: true,
            tools: true,
            ..Capabilities::default()
        }
    }

    fn settings(&self, _: &Settings) -> NativeSettings {
        NativeSettings::default()
    }

    fn stream(&self, request: Request) -> ModelStream {
        let process = self.process.clone();
        let message = self.answer(&request);
        let world = &process.world;
        let pace = world.pick(&[10, 100, 800]);
        async_stream::stream! {
            process.pause(pace * 2).await;
            yield Ok(ModelEvent::Event(StreamEvent::MessageStart));
            if let Some(AssistantContent::Text { text }) = message.content.first() {
                yield Ok(ModelEvent::Event(StreamEvent::ContentBlockStart { index: 0 }));
                for word in text.split_inclusive(' ') {
                    process.pause(pace).await;
                    let text = word.to_owned();
                    yield Ok(ModelEvent::Event(StreamEvent::TextDelta { index: 0, text }));
                }
                yield Ok(ModelEvent::Event(StreamEvent::ContentBlockStop { index: 0 }));
            }
            process.pause(pace).await;
            yield Ok(ModelEvent::Event(StreamEvent::MessageStop));
            let stop_reason = if message.tool_calls.is_empty() { StopReason::EndTurn } else { StopReason::ToolUse };
            yield Ok(ModelEvent::Done(Box::new(Response {
                message,
                usage: CycleUsage::default(),
                stop_reason,
                data: None,
                model_id: "drawn".into(),
                provider: "sim".into(),
                response_id: None,
                request: None,
            })));
        }
        .boxed()
    }
}

fn parameters() -> Value {
    json!({"type": "object", "properties": {"task": {"type": "string"}}})
}

/// A tool that takes its time, and writes into the ledger when it takes effect.
fn tool(process: &Process, name: &'static str, effect: Effect) -> Tool {
    let process = process.clone();
    let run = move |_: Value, context: ToolContext| {
        let process = process.clone();
        async move {
            process.pause(100).await;
            let call = context.tool_call_id.to_string();
            process
                .world
                .note(format_args!("n{} runs {name} {call}", process.place));
            if effect == Effect::Effect {
                let mut ledger = process.world.ledger.lock().unwrap();
                // A fork may answer the same call; its key is another.
                let runs = ledger
                    .entry(context.idempotency_key.to_string())
                    .or_default();
                runs.push(format!("n{}", process.place));
                let n = runs.len();
                drop(ledger);
                process.world.check(n == 1, || {
                    format!("the effect tool {name} ran {n} times for {call}")
                });
            }
            process
                .pause(if process.world.happens(100) {
                    4_000
                } else {
                    200
                })
                .await;
            Ok(json!({"by": name}))
        }
        .boxed()
    };
    Tool::new(name, "Works.", parameters(), run).with_effect(effect)
}

fn sub(agent: Agent) -> Tool {
    let name = agent.name().to_owned();
    let prompt = |arguments: &Value| Ok(arguments["task"].as_str().unwrap_or_default().into());
    subagent_tool(SubAgentTool::new(
        name,
        "Does one task.",
        parameters(),
        agent,
        move |it| prompt(it),
    ))
}

fn agent(
    process: &Process,
    name: &str,
    (calls, often): (&'static [&'static str], u64),
    tools: Vec<Tool>,
) -> Agent {
    let model = Drawn {
        process: process.clone(),
        calls,
        often,
    };
    let mut options = AgentOptions::new(name, Arc::new(model));
    options.id = Some(name.into());
    options.tools = tools;
    Agent::new(options).unwrap()
}

/// The agents of a process; the first one is the default.
pub(crate) fn all(process: &Process) -> Vec<Agent> {
    let approved = || tool(process, "approved", Effect::Effect).with_requires_approval();
    let plain = || {
        vec![
            tool(process, "pure", Effect::Pure),
            tool(process, "idempotent", Effect::Idempotent),
            tool(process, "effect", Effect::Effect),
        ]
    };
    let helper = agent(
        process,
        "helper",
        (&["pure", "effect", "idempotent"], 400),
        plain(),
    );
    let asker = agent(process, "asker", (&["approved"], 600), vec![approved()]);
    let external = Tool::external("external", "Is run elsewhere.", json!({"type": "object"}));
    let mut tools = plain();
    tools.extend([
        approved(),
        external,
        sub(helper.clone()),
        sub(asker.clone()),
    ]);
    let calls: (&'static [&'static str], u64) = match process.world.faults.habit {
        Habit::Everything => (
            &[
                "pure",
                "idempotent",
                "effect",
                "effect",
                "approved",
                "external",
                "helper",
                "asker",
            ],
            500,
        ),
        Habit::Children => (&["asker", "asker", "asker", "helper", "pure"], 900),
        Habit::Effects => (&["effect", "effect", "approved", "idempotent"], 800),
        Habit::Talk => (&["pure"], 100),
    };
    vec![agent(process, "lead", calls, tools), helper, asker]
}
