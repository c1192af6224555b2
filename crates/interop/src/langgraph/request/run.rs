//! Requests that start runs.

use super::{Speaks, checkpoint, uuid};
use crate::langgraph::error::RequestError;
use crate::langgraph::fields::{Fields, MAX_ID, choose};
use crate::langgraph::input::Input;
use crate::langgraph::run::{BEFORE, ECHO};
use crate::options::RunOptions;
use serde_json::{Map, Value};

/// The fields that a run's body may have.
const KNOWN: &[&str] = &[
    "assistant_id",
    "agent_id",
    "assistantId",
    "thread_id",
    "input",
    "messages",
    "command",
    "metadata",
    "config",
    "context",
    "stream_mode",
    "stream_subgraphs",
    "stream_resumable",
    "checkpoint",
    "checkpoint_id",
    "checkpoint_during",
    "durability",
    "interrupt_before",
    "interrupt_after",
    "feedback_keys",
    "webhook",
    "on_disconnect",
    "on_completion",
    "multitask_strategy",
    "if_not_exists",
    "after_seconds",
    "langsmith_tracer",
    "strict_resume",
    "_langsmith_tracer",
    "graph_id",
    "temporary",
];
/// The most stream modes of a request.
const MAX_MODES: usize = 16;
/// The member of a run's echo that holds its stream modes.
pub(in crate::langgraph) const MODES: &str = "stream_mode";
/// The most steps that a run can be limited to.
const MAX_STEPS: u64 = 1_000_000;

/// A kind of event in a run's stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StreamMode {
    /// The thread's values, when the run starts and when it ends.
    Values,
    /// The messages that each step added.
    Updates,
    /// Messages, each grown so far.
    Messages,
    /// Messages in chunks.
    MessagesTuple,
    /// Custom data that agents and their tools send.
    Custom,
}

impl StreamMode {
    /// All of them, by their names.
    pub const NAMES: [(&str, Self); 5] = [
        ("values", Self::Values),
        ("updates", Self::Updates),
        ("messages", Self::Messages),
        ("messages-tuple", Self::MessagesTuple),
        ("custom", Self::Custom),
    ];

    /// The protocol's word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Values => "values",
            Self::Updates => "updates",
            Self::Messages => "messages",
            Self::MessagesTuple => "messages-tuple",
            Self::Custom => "custom",
        }
    }

    /// Reads a name.
    pub(in crate::langgraph) fn read(name: &str, pointer: &str) -> Result<Self, RequestError> {
        choose(Some(name), &Self::NAMES, || pointer.to_owned())
    }
}

/// The handling of a run request for a busy thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Multitask {
    /// The run is refused.
    Reject,
    /// The server stops the current run, then starts this one.
    Interrupt,
    /// The server stops the current run and removes it from the thread, then starts this one.
    Rollback,
    /// The run is queued.
    Enqueue,
}

/// Answers to pending calls.
#[derive(Clone, Debug, PartialEq)]
pub enum ResumeValues {
    /// `command.resume`, which may name them in several ways.
    Command(Value),
    /// An answer for each id of an interrupt.
    ById(Map<String, Value>),
}

/// A request to start a run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunCreate {
    /// The protocol of the request.
    pub speaks: Speaks,
    /// The thread that the body names.
    pub thread_id: Option<String>,
    /// The agent that runs; the default agent when absent.
    pub agent: Option<String>,
    /// The new messages, and the results of client tools.
    pub input: Input,
    /// The answers to pending calls.
    pub resume: Option<ResumeValues>,
    /// The kinds of events to stream.
    pub modes: Vec<StreamMode>,
    /// Whether the run stops when the client disconnects.
    pub cancels_on_disconnect: bool,
    /// Whether the server retains the thread that it creates for a run without one, after that run.
    pub keeps: bool,
    /// The handling of the run if the thread is busy.
    pub multitask: Multitask,
    /// Whether the thread is made if there is none.
    pub makes_thread: bool,
    /// The state to continue from. It must be the last one.
    pub checkpoint: Option<String>,
    /// Maximum number of steps.
    pub max_steps: Option<u32>,
    /// The request's options, which the run's object returns to clients.
    echo: Map<String, Value>,
}

impl RunCreate {
    /// The fields that a run's body may have.
    pub const KNOWN: &'static [&'static str] = KNOWN;

    /// Reads a body.
    pub fn read(body: &Value) -> Result<Self, RequestError> {
        let fields = Fields::closed(body, "", Self::KNOWN)?;
        let speaks = if fields.present("assistant_id").is_some() {
            Speaks::LangGraph
        } else {
            Speaks::AgentProtocol
        };
        refuse(&fields)?;
        let (input, resume) = given(&fields)?;
        let (config, max_steps) = config(&fields)?;
        let strategies = [
            ("reject", Multitask::Reject),
            ("interrupt", Multitask::Interrupt),
            ("rollback", Multitask::Rollback),
            ("enqueue", Multitask::Enqueue),
        ];
        let multitask = fields.word("multitask_strategy", &strategies)?;
        let multitask = multitask.unwrap_or(match speaks {
            Speaks::LangGraph => Multitask::Enqueue,
            Speaks::AgentProtocol => Multitask::Reject,
        });
        let mut echo = Map::new();
        let mut keep = |key: &str, value: Option<Map<String, Value>>| {
            let value = value.filter(|value| !value.is_empty());
            echo.extend(value.map(|value| (key.to_owned(), Value::Object(value))));
        };
        keep("metadata", fields.noted("metadata")?);
        keep("config", config);
        keep("context", fields.noted("context")?);
        echo.extend(
            fields
                .get("multitask_strategy")
                .map(|it| ("multitask_strategy".to_owned(), it.clone())),
        );
        let modes = modes(&fields)?;
        let names: Vec<&str> = modes.iter().map(|mode| mode.name()).collect();
        echo.insert(MODES.to_owned(), names.into());
        let agent = match fields.text(speaks.agent_key(), MAX_ID)? {
            None => fields.text("assistantId", MAX_ID)?,
            found => found,
        };
        if speaks == Speaks::LangGraph && agent.is_none() {
            return Err(fields.wrong("assistant_id", "expected a string"));
        }
        let ways = [("cancel", true), ("continue", false)];
        let ends = [("keep", true), ("delete", false)];
        let makes = [("create", true), ("reject", false)];
        Ok(Self {
            speaks,
            thread_id: uuid(&fields, "thread_id")?,
            agent: agent.map(str::to_owned),
            input,
            resume,
            modes,
            cancels_on_disconnect: fields.word("on_disconnect", &ways)?.unwrap_or_default(),
            keeps: fields.word("on_completion", &ends)?.unwrap_or_default(),
            multitask,
            makes_thread: fields.word("if_not_exists", &makes)?.unwrap_or_default(),
            checkpoint: checkpoint(&fields)?,
            max_steps,
            echo,
        })
    }

    /// Whether the run answers pending calls.
    pub fn is_resumed(&self) -> bool {
        self.resume.is_some() || !self.input.results.is_empty()
    }

    /// The options to store with the run: the echoed request options, and the ids in `before`.
    /// `before` are the messages that precede those the run responds to.
    pub fn options<'a>(&self, before: impl IntoIterator<Item = &'a str>) -> RunOptions {
        let mut options = RunOptions::default();
        self.note(&mut options);
        let before: Vec<&str> = before.into_iter().collect();
        if let Some(Value::Object(echo)) = options.echo.get_mut(ECHO)
            && !before.is_empty()
        {
            echo.insert(BEFORE.to_owned(), before.into());
        }
        options
    }

    /// Merges the echoed request options into `options`. Options stored earlier remain unless this
    /// request replaces them.
    pub fn note(&self, options: &mut RunOptions) {
        let kept = options.echo.remove(ECHO);
        let mut echo = kept
            .and_then(|it| it.as_object().cloned())
            .unwrap_or_default();
        echo.extend(self.echo.clone());
        options.echo.insert(ECHO.to_owned(), Value::Object(echo));
    }
}

/// Refuses options that this server does not support.
fn refuse(fields: &Fields<'_>) -> Result<(), RequestError> {
    let nodes = "an agent has no nodes to stop at here; its configuration says which tools want an approval";
    for (key, why) in [
        (
            "webhook",
            "nobody is called back here: wait for the run, or follow it",
        ),
        ("interrupt_before", nodes),
        ("interrupt_after", nodes),
        ("feedback_keys", "no feedback is taken here"),
        ("after_seconds", "no run begins later here"),
        ("langsmith_tracer", "runs are not traced to LangSmith"),
        ("_langsmith_tracer", "runs are not traced to LangSmith"),
        (
            "stream_subgraphs",
            "the events of sub-agents are not streamed in this protocol",
        ),
        ("graph_id", "name the agent as assistant_id or agent_id"),
        ("temporary", "say on_completion"),
    ] {
        fields.refuse(key, why)?;
    }
    // All of these are kept in any case: what a run does is durable at once, and its stream can be
    // taken up again.
    for key in ["stream_resumable", "checkpoint_during", "strict_resume"] {
        fields.flag(key)?;
    }
    fields.word("durability", &[("sync", ()), ("async", ()), ("exit", ())])?;
    Ok(())
}

/// Reads `input`, `messages` and `command` into the run's input and its answers to pending calls.
fn given(fields: &Fields<'_>) -> Result<(Input, Option<ResumeValues>), RequestError> {
    let mut input = match fields.get("input") {
        Some(given) => Input::read(given, &fields.at("input"))?,
        None => Input::default(),
    };
    if let Some(messages) = fields.get("messages") {
        input.messages(messages, &fields.at("messages"))?;
    }
    let Some(command) = fields.get("command") else {
        return Ok((input, None));
    };
    let command = Fields::closed(command, fields.at("command"), &["resume", "update", "goto"])?;
    let why = "agents here are resumed and nothing else: expected resume";
    command.refuse("update", why)?;
    command.refuse("goto", why)?;
    let resume = command.get("resume").cloned();
    if resume.is_some() && !input.is_empty() {
        let what = "expected no input beside a command that resumes";
        return Err(RequestError::at(command.pointer(), what));
    }
    Ok((input, resume.map(ResumeValues::Command)))
}

/// A run's configuration, and the steps that it is limited to.
type Config = (Option<Map<String, Value>>, Option<u32>);

/// Reads `config`: the configuration to echo, without the thread's id, and `recursion_limit`.
fn config(fields: &Fields<'_>) -> Result<Config, RequestError> {
    let Some(mut config) = fields.noted("config")? else {
        return Ok((None, None));
    };
    let whole = Value::Object(config.clone());
    let inner = Fields::closed(
        &whole,
        fields.at("config"),
        &["tags", "recursion_limit", "configurable", "metadata"],
    )?;
    inner.texts("tags", 100)?;
    inner.noted("configurable")?;
    let limit = inner.whole("recursion_limit", 1, MAX_STEPS)?;
    // The clients put the thread's id there themselves.
    if let Some(Value::Object(configurable)) = config.get_mut("configurable") {
        configurable.remove("thread_id");
    }
    config.retain(|_, value| value.as_object().is_none_or(|it| !it.is_empty()) && !value.is_null());
    Ok((Some(config), limit.and_then(|it| u32::try_from(it).ok())))
}

fn modes(fields: &Fields<'_>) -> Result<Vec<StreamMode>, RequestError> {
    let at = fields.at("stream_mode");
    match fields.get("stream_mode") {
        None => Ok(vec![StreamMode::Values]),
        Some(Value::String(name)) => Ok(vec![StreamMode::read(name, &at)?]),
        Some(_) => {
            let names = fields.texts("stream_mode", MAX_MODES)?;
            let modes = names.iter().enumerate();
            modes
                .map(|(place, name)| StreamMode::read(name, &format!("{at}/{place}")))
                .collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_body_with_an_assistant_is_langgraphs_and_waits_for_its_turn() {
        let run =
            RunCreate::read(&json!({"assistant_id": "demo", "input": {"messages": "Hi"}})).unwrap();
        assert_eq!(
            (run.speaks, run.multitask),
            (Speaks::LangGraph, Multitask::Enqueue)
        );
        assert_eq!(run.modes, [StreamMode::Values]);
        let run = RunCreate::read(
            &json!({"agent_id": "demo", "messages": [{"role": "user", "content": "Hi"}]}),
        );
        let run = run.unwrap();
        assert_eq!(
            (run.speaks, run.multitask),
            (Speaks::AgentProtocol, Multitask::Reject)
        );
        assert_eq!(run.input.messages.len(), 1);
        let run = RunCreate::read(&json!({"assistantId": "demo", "input": {"messages": "Hi"}}));
        let run = run.unwrap();
        assert_eq!(
            (run.speaks, run.agent.as_deref()),
            (Speaks::AgentProtocol, Some("demo"))
        );
    }

    #[test]
    fn what_a_run_was_given_beside_its_input_is_said_again() {
        let body = json!({
            "assistant_id": "demo", "metadata": {"a": 1}, "context": {},
            "config": {"recursion_limit": 9, "configurable": {"thread_id": "t", "user": "ada"}},
        });
        let run = RunCreate::read(&body).unwrap();
        assert_eq!(run.max_steps, Some(9));
        let echo = run.options(["u1"]).echo.remove(ECHO).unwrap();
        assert_eq!(echo[BEFORE], json!(["u1"]));
        assert_eq!(echo["config"]["configurable"], json!({"user": "ada"}));
        assert_eq!(
            (&echo["metadata"], echo.get("context")),
            (&json!({"a": 1}), None)
        );
    }

    #[test]
    fn what_nobody_does_here_is_refused_by_name() {
        for (key, value) in [
            ("webhook", json!("https://a.example")),
            ("interrupt_before", json!("*")),
            ("interrupt_after", json!(["tools"])),
            ("after_seconds", json!(5)),
            ("feedback_keys", json!(["stars"])),
            ("multitask_strategy", json!("wait")),
            ("stream_subgraphs", json!(true)),
            ("stream_mode", json!("debug")),
            ("stream_mode", json!(["values", "events"])),
            ("command", json!({"goto": "tools"})),
            ("command", json!({"update": {"messages": []}})),
            ("input", json!({"todos": []})),
            ("input", json!("Hi")),
            ("thread_id", json!("talk")),
            ("checkpoint", json!({"checkpoint_ns": "sub"})),
            ("config", json!({"recursion_limit": 0})),
            ("colour", json!("green")),
        ] {
            let mut body = json!({"assistant_id": "demo"});
            body[key] = value.clone();
            let error = RunCreate::read(&body).unwrap_err();
            let place = error.pointer.unwrap();
            assert!(place.starts_with(&format!("/{key}")), "{key}: {place}");
        }
        assert!(RunCreate::read(&json!({"assistant_id": null})).is_err());
        let nothing = json!({
            "assistant_id": "demo", "webhook": null, "interrupt_before": [], "after_seconds": 0, "stream_subgraphs": false,
        });
        assert!(RunCreate::read(&nothing).is_ok());
    }

    #[test]
    fn a_command_resumes_and_brings_no_input() {
        let body = json!({"assistant_id": "demo", "command": {"resume": {"c": true}}});
        assert_eq!(
            RunCreate::read(&body).unwrap().resume,
            Some(ResumeValues::Command(json!({"c": true})))
        );
        let both = json!({"assistant_id": "demo", "command": {"resume": true}, "input": {"messages": "Hi"}});
        assert_eq!(
            RunCreate::read(&both).unwrap_err().pointer.as_deref(),
            Some("/command")
        );
    }
}
