//! What one run may ask of its agent.

use super::model::{Canned, calling, said};
use super::rig::{Client, bring, tenant};
use agents::{Agent, AgentOptions};
use futures_util::StreamExt;
use interop::options::{AnswerFormat, ClientTool, RunOptions, RunToolChoice};
use loomline_runtime as runtime;
use runtime::{
    AgentReactor, Models, OptionsRefused, ReactRequest, Runtime, RuntimeError, RuntimeOptions,
    Until,
};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use store::Run;
use timeline::{Entry, ExecutionStatus, NewItem, Seq};
use upp::{
    Arguments, Capabilities, Model, ModelStream, NativeSettings, Request, Settings, Tool, ToolCall,
};

/// A model that keeps what it was asked, and whose answers are another's.
pub(super) struct Kept {
    model: Arc<Canned>,
    pub(super) requests: Mutex<Vec<Request>>,
}

impl Kept {
    pub(super) fn new(model: Arc<Canned>) -> Arc<Self> {
        Arc::new(Self {
            model,
            requests: Mutex::default(),
        })
    }

    /// What stood in the nth request: system prompt, names of the tools, choice.
    fn nth(&self, n: usize) -> (Option<String>, Vec<String>, upp::ToolChoice) {
        let requests = self.requests.lock().unwrap();
        let request = &requests[n];
        let tools = request.tools.iter().map(|tool| tool.name.clone());
        let system = request.system.as_deref().map(str::to_owned);
        (system, tools.collect(), request.tool_choice.clone())
    }
}

impl Model for Kept {
    fn model_id(&self) -> &str {
        self.model.model_id()
    }

    fn provider(&self) -> &str {
        self.model.provider()
    }

    fn capabilities(&self) -> Capabilities {
        self.model.capabilities()
    }

    fn settings(&self, settings: &Settings) -> NativeSettings {
        let mut native = NativeSettings::default();
        if let Some(temperature) = settings.temperature {
            native.params.insert("heat".into(), temperature.into());
        }
        native
    }

    fn stream(&self, request: Request) -> ModelStream {
        self.requests.lock().unwrap().push(request.clone());
        self.model.stream(request).boxed()
    }
}

pub(super) fn call(id: &str, tool: &str) -> ToolCall {
    ToolCall {
        tool_call_id: id.into(),
        tool_name: tool.into(),
        arguments: Arguments::from_text("{}"),
        after: Vec::new(),
    }
}

fn own_tool() -> Tool {
    let schema = json!({"type": "object"});
    Tool::simple("own", "The agent's own.", schema, |_: Value| async {
        Ok(json!("done"))
    })
}

pub(super) fn agent(model: Arc<Kept>) -> AgentOptions {
    let mut options = AgentOptions::new("helper", model);
    options.system = Some("Be brief.".into());
    options.params = Arc::new(serde_json::Map::from_iter([("seed".into(), json!(1))]));
    options.tools = vec![own_tool()];
    options
}

pub(super) fn weather() -> ClientTool {
    ClientTool {
        name: "weather".into(),
        description: None,
        parameters: None,
        strict: None,
    }
}

pub(super) fn run(options: &RunOptions) -> Run {
    Run {
        params: Some(serde_json::to_value(options).unwrap()),
        ..Run::default()
    }
}

#[tokio::test]
async fn what_a_run_asks_holds_for_all_its_steps_and_for_no_other_run() {
    let model = Kept::new(Canned::rounds(vec![vec![call("c", "own")]]));
    let mut client = Client::calm(agent(Arc::clone(&model)));
    let options = RunOptions {
        instructions: Some("Be thorough.".into()),
        additional_instructions: Some("In German.".into()),
        tools: vec![weather()],
        tool_choice: Some(RunToolChoice::Required),
        temperature: Some(0.5),
        format: Some(AnswerFormat::JsonObject),
        ..RunOptions::default()
    };
    client.say_as("one", run(&options)).await;
    client.rest().await;
    client.say("two").await;
    client.rest().await;
    let system = || Some("Be thorough.\n\nIn German.".to_owned());
    let tools = || vec!["own".to_owned(), "weather".to_owned()];
    assert_eq!(model.nth(0), (system(), tools(), upp::ToolChoice::Required));
    // What must be called first is called; after that the model may answer.
    assert_eq!(model.nth(1), (system(), tools(), upp::ToolChoice::Auto));
    let requests = model.requests.lock().unwrap().clone();
    let (first, last) = (&requests[0], requests.last().unwrap());
    assert_eq!(
        *first.params,
        *json!({"seed": 1, "heat": 0.5}).as_object().unwrap()
    );
    assert!(first.structure.is_some());
    assert_eq!(last.system.as_deref(), Some("Be brief."));
    assert_eq!((last.tools.len(), last.params.len()), (1, 1));
    assert!(last.structure.is_none());
}

#[tokio::test]
async fn a_tool_that_the_client_executes_is_waited_for_over_a_restart() {
    let model = Kept::new(Canned::rounds(vec![vec![call("c", "weather")]]));
    let mut client = Client::calm(agent(Arc::clone(&model)));
    let options = RunOptions {
        tools: vec![weather()],
        only_these_tools: true,
        ..RunOptions::default()
    };
    client.say_as("one", run(&options)).await;
    let open = client.open().await;
    assert_eq!(open.len(), 1);
    client.restart().await;
    client.answer(bring("c", &json!("sunny"))).await;
    client.rest().await;
    // It still knows the tool, and only that.
    assert_eq!(model.nth(1).1, ["weather"]);
    let requests = model.requests.lock().unwrap().clone();
    let messages: Vec<Value> = requests[1]
        .messages
        .iter()
        .map(|it| serde_json::to_value(it).unwrap())
        .collect();
    assert_eq!(messages.last().unwrap()["results"][0]["result"], "sunny");
}

#[tokio::test]
async fn a_tool_that_is_not_allowed_is_not_offered_and_not_run() {
    let model = Kept::new(Canned::new(|request: &Request| {
        match request.messages.len() {
            1 => calling(vec![call("c", "own")]),
            _ => said("done"),
        }
    }));
    let mut client = Client::calm(agent(Arc::clone(&model)));
    let options = RunOptions {
        tools: vec![weather()],
        tool_choice: Some(RunToolChoice::Allowed {
            names: vec!["weather".into()],
            required: false,
        }),
        ..RunOptions::default()
    };
    client.say_as("one", run(&options)).await;
    client.rest().await;
    assert_eq!(model.nth(0).1, ["weather"]);
    let requests = model.requests.lock().unwrap().clone();
    let last = serde_json::to_value(requests[1].messages.iter().next_back().unwrap()).unwrap();
    assert_eq!(last["results"][0]["isError"], true);
}

struct One(Arc<Kept>);

impl Models for One {
    fn find(&self, name: &str) -> Option<Arc<dyn Model>> {
        (name == "large").then(|| Arc::clone(&self.0) as Arc<dyn Model>)
    }
}

#[test]
fn what_an_agent_can_not_do_is_said_before_it_runs() {
    let model = || Kept::new(Canned::rounds(Vec::new()));
    let reactor = AgentReactor::new(Agent::new(agent(model())).unwrap());
    let reactor = reactor.with_models(Arc::new(One(model())));
    let check = |options: RunOptions| reactor.check_params(run(&options).params.as_ref());
    let named = |model: &str| RunOptions {
        model: Some(model.into()),
        ..RunOptions::default()
    };
    assert_eq!(check(named("large")), Ok(()));
    assert_eq!(
        check(named("huge")),
        Err(OptionsRefused::UnknownModel("huge".into()))
    );
    let chosen = RunOptions {
        tool_choice: Some(RunToolChoice::Function {
            name: "none".into(),
        }),
        ..RunOptions::default()
    };
    assert_eq!(
        check(chosen),
        Err(OptionsRefused::UnknownTool("none".into()))
    );
    let twice = RunOptions {
        tools: vec![weather(), weather()],
        ..RunOptions::default()
    };
    assert!(matches!(check(twice), Err(OptionsRefused::Tool(_))));
    let params = json!({"tools": 1});
    let unreadable = reactor.check_params(Some(&params));
    assert!(matches!(unreadable, Err(OptionsRefused::Unreadable(_))));
}

#[tokio::test]
async fn options_that_an_agent_can_not_follow_fail_the_run_and_say_why() {
    let model = Kept::new(Canned::rounds(Vec::new()));
    let mut client = Client::calm(agent(Arc::clone(&model)));
    let options = RunOptions {
        model: Some("huge".into()),
        ..RunOptions::default()
    };
    client.say_as("one", run(&options)).await;
    client.rest().await;
    assert!(model.requests.lock().unwrap().is_empty());
    let transcript = client.transcript().await;
    let Some(Entry::Reaction(reaction)) = transcript.entries.last() else {
        panic!("no reaction");
    };
    assert_eq!(reaction.execution.status, ExecutionStatus::Failed);
    let detail = reaction
        .execution
        .interruption
        .as_ref()
        .and_then(|why| why.detail.as_deref());
    assert_eq!(detail, Some("there is no model \"huge\""));
}

/// Models by name that count how often they are looked for.
struct Counted(AtomicUsize, Arc<Kept>);

impl Models for Counted {
    fn find(&self, _: &str) -> Option<Arc<dyn Model>> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Some(Arc::clone(&self.1) as Arc<dyn Model>)
    }
}

#[tokio::test]
async fn an_agent_is_made_as_a_run_wants_it_once_a_run() {
    let rounds = ["a", "b", "c"].map(|id| vec![call(id, "own")]);
    let model = Kept::new(Canned::rounds(rounds.into()));
    let own = Kept::new(Canned::rounds(Vec::new()));
    let models = Arc::new(Counted(AtomicUsize::new(0), Arc::clone(&model)));
    let reactor = AgentReactor::new(Agent::new(agent(own)).unwrap());
    let reactor = Arc::new(reactor.with_models(models.clone()));
    let store = Arc::new(store::MemoryStore::new());
    let runtime = Runtime::new(store, Arc::new(reactor), RuntimeOptions::default());
    let options = RunOptions {
        model: Some("large".into()),
        ..RunOptions::default()
    };
    let content = json!([{"type": "input_text", "text": "go"}]).into();
    let request = ReactRequest {
        run: run(&options),
        ..ReactRequest::new(tenant(), "k", NewItem::user("item".to_owned(), content))
    };
    runtime.react(request).await.unwrap();
    let tenant = tenant();
    let rest = runtime.follow(&tenant, "k", Seq::ZERO, Until::Rest).await;
    rest.unwrap().count().await;
    assert_eq!(model.requests.lock().unwrap().len(), 4);
    assert_eq!(models.0.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn answers_are_checked_against_the_tools_that_the_run_has() {
    let model = Kept::new(Canned::rounds(vec![vec![call("c", "weather")]]));
    let mut client = Client::calm(agent(Arc::clone(&model)));
    let options = RunOptions {
        tools: vec![weather()],
        ..RunOptions::default()
    };
    client.say_as("one", run(&options)).await;
    assert_eq!(client.open().await.len(), 1);
    let deep = (0..110).fold(json!("sunny"), |inner, _| json!([inner]));
    let refused = client.try_answer(&bring("c", &deep)).await;
    assert!(
        matches!(&refused, Err(RuntimeError::Answer(it)) if it.call.as_deref() == Some("c")),
        "{refused:?}"
    );
    client.answer(bring("c", &json!("sunny"))).await;
    client.rest().await;
    assert_eq!(model.requests.lock().unwrap().len(), 2);
}
