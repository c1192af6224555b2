//! What the crate shows, and what it leaves to the crate below (UAP §1.3, §2.1, §3.2, §13).

use crate::support::*;
use loomline_agents::{AgentState, AgentStreamEvent, GenerateResult};
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else {
            found.push(path);
        }
    }
}

/// What a source exports of the crate below, or gives another name there.
fn exported_again(source: &str) -> Vec<String> {
    // A statement may be spread over lines, and its braces may be nested.
    let words: Vec<&str> = source.split_whitespace().collect();
    let statements = words.join(" ");
    let public = statements.match_indices("pub use ").chain(
        // Another name for a type is an abstraction of it, too.
        statements.match_indices("pub type "),
    );
    let public = public.map(|(at, _)| {
        let rest = &statements[at..];
        rest.split(';').next().unwrap_or(rest).to_owned()
    });
    let is_theirs = |statement: &String| {
        let plain = statement.replace("pub use ", "");
        let of_theirs = ["upp::", "loomline_upp::", "::upp::"];
        let target = plain.split('=').next_back().unwrap_or(&plain).trim();
        target == "upp" || of_theirs.iter().any(|start| target.starts_with(start))
    };
    public.filter(is_theirs).collect()
}

#[test]
fn no_type_of_the_provider_protocol_is_exported_again() {
    let mut files = Vec::new();
    sources(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("src"),
        &mut files,
    );
    assert!(files.len() > 50, "all sources are there");
    for file in files {
        let source = std::fs::read_to_string(&file).unwrap();
        let found = exported_again(&source);
        assert!(found.is_empty(), "{}: {found:?}", file.display());
    }
    for text in [
        "pub use upp::Turn;",
        "pub use upp::{\n    Message,\n    Turn,\n};",
        "pub use upp;",
        "pub use loomline_upp::*;",
        "pub type Answer = upp::Turn;",
    ] {
        assert_eq!(exported_again(text).len(), 1, "{text}");
    }
    assert!(exported_again("use upp::Turn;\npub use plan::PlanStep;").is_empty());
}

#[tokio::test]
async fn the_types_of_the_provider_protocol_are_used_as_they_are() {
    let agent = agent(adding());
    let model: &Arc<dyn upp::Model> = agent.model();
    let tools: &[upp::Tool] = agent.tools();
    assert_eq!((model.provider(), tools.len()), ("scripted", 1));
    let input: upp::Message = upp::UserMessage::text("go").into();
    let result = agent.generate(input, AgentState::initial()).await.unwrap();
    let GenerateResult { turn, state, .. } = result;
    let turn: upp::Turn = turn;
    let messages: &upp::Messages = state.messages();
    let usage: &upp::TokenUsage = &turn.usage;
    let executions: &[upp::ToolExecution] = &turn.tool_executions;
    assert_eq!((messages.len(), executions.len()), (8, 3));
    assert_eq!(usage.cycles.len(), 4);
    // A thread of the crate below goes on with what an agent has said.
    let mut thread = upp::Thread::new();
    thread.append(&turn);
    assert_eq!(thread.len(), 8);
    // And its model goes on with an agent's state as with any history.
    let llm = upp::Llm::new(upp::LlmOptions::new(Arc::new(upp::Scripted::new()))).unwrap();
    let more = llm.generate(messages.clone(), ["and now?"]).await.unwrap();
    assert_eq!(more.messages.len(), 2);
    let event: AgentStreamEvent = upp::StreamEvent::MessageStart.into();
    assert!(matches!(
        event,
        AgentStreamEvent::Upp {
            upp: upp::StreamEvent::MessageStart
        }
    ));
}

fn is_store(_: &impl loomline_agents::checkpoint::CheckpointStore) {}

#[test]
fn each_functionality_has_an_entry_point_of_its_own() {
    use loomline_agents::checkpoint::{FileCheckpointOptions, FileCheckpoints};
    use loomline_agents::execution::{ExecutionStrategy, Loop, Plan, React};
    use loomline_agents::middleware::{LoggingOptions, logging};
    use loomline_agents::{Agent, Middleware, ThreadNode, ThreadTree};

    let strategies: [&dyn ExecutionStrategy; 3] =
        [&Loop::default(), &React::default(), &Plan::default()];
    let names = strategies.map(ExecutionStrategy::name);
    assert_eq!(names, ["loop", "react", "plan"]);
    assert_eq!(logging(LoggingOptions::default()).name(), "logging");
    let made: Agent = agent(adding());
    assert_eq!(made.name(), "tester");
    let tree = ThreadTree::new();
    let root: &ThreadNode = tree.root();
    assert_eq!(root.state().step(), 0);
    let files = FileCheckpoints::new(FileCheckpointOptions::default());
    assert_eq!(files.dir(), std::path::Path::new(".checkpoints"));
    is_store(&files);
}
