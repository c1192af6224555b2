//! What a model can't do is refused as `Llm` refuses it (UPP §3, §11).

use crate::support::*;
use loomline_agents::{Agent, AgentOptions, AgentState, OptionsError, Plan, React};
use serde_json::json;
use std::sync::Arc;
use upp::{
    Capabilities, Code, Image, Llm, LlmOptions, Message, MessageOptions, Model, ModelEvent,
    ModelLayer, ModelStream, Request, Scripted, UserMessage,
};

/// A model that can do nothing but text.
fn text_only() -> Arc<Canned> {
    let mut model = Canned::new(|_| Some(said("yes")));
    Arc::get_mut(&mut model).unwrap().capabilities = Capabilities::default();
    model
}

fn refused(options: AgentOptions) -> Option<&'static str> {
    match Agent::new(options) {
        Err(OptionsError::Unsupported { model, what }) if model == "canned" => Some(what),
        Ok(_) | Err(_) => None,
    }
}

#[test]
fn an_agent_refuses_tools_and_structures_that_its_model_lacks() {
    let mut with_tools = options(text_only());
    with_tools.tools = vec![add()];
    assert_eq!(refused(with_tools), Some("call tools"));
    let mut structured = options(text_only());
    structured.structure = Some(Arc::new(json!({"type": "object"})));
    assert_eq!(refused(structured), Some("answer in a given structure"));
}

fn seen() -> Message {
    let image = Image::from_bytes(b"\x89PNG\r\n\x1a\n".to_vec(), "image/png");
    UserMessage::new(vec![image.to_block()], MessageOptions::default()).into()
}

#[tokio::test]
async fn an_agent_refuses_media_that_its_model_lacks_as_llm_does() {
    let model = text_only();
    let llm = Llm::new(LlmOptions::new(model.clone())).unwrap();
    let expected = llm.generate(Vec::new(), [seen()]).await.unwrap_err();
    let agent = agent(options(model.clone()));
    let earlier = AgentState::initial()
        .with_message(seen())
        .with_message(said("A picture."));
    for (input, state) in [
        (seen(), AgentState::initial()),
        ("And now?".into(), earlier),
    ] {
        let error = agent.generate(input, state).await.unwrap_err();
        assert_eq!(error.code(), Some(Code::InvalidRequest));
        let cause = std::error::Error::source(&error).map(ToString::to_string);
        assert_eq!(cause, Some(expected.to_string()));
    }
    assert!(model.seen.lock().unwrap().is_empty(), "nothing was asked");
}

/// Answers with data that nobody asked for, as some providers do.
struct Talkative(Scripted);

impl ModelLayer for Talkative {
    fn inner(&self) -> &dyn Model {
        &self.0
    }

    fn stream(&self, request: Request) -> ModelStream {
        let events = self.0.stream(request);
        Box::pin(futures_util::StreamExt::map(events, |item| {
            item.map(|event| match event {
                ModelEvent::Done(mut response) => {
                    response.data = Some(json!({"unasked": true}));
                    ModelEvent::Done(response)
                }
                ModelEvent::Event(_) => event,
            })
        }))
    }
}

#[tokio::test]
async fn an_agent_gives_data_only_where_a_structure_was_asked_for() {
    let talkative = || Arc::new(Talkative(Scripted::new()));
    let plain = agent(options(talkative())).query("Hi").await.unwrap();
    assert_eq!(plain.data, None);
    let mut structured = options(talkative());
    structured.structure = Some(Arc::new(json!({"type": "object"})));
    let asked = agent(structured).query("Hi").await.unwrap();
    assert_eq!(asked.data, Some(json!({"unasked": true})));
    let mut reacting = options(talkative());
    reacting.execution = Arc::new(React::default());
    assert_eq!(agent(reacting).query("Hi").await.unwrap().data, None);
}

#[tokio::test]
async fn a_plans_own_data_is_not_the_turns() {
    let plan = json!({"steps": [{"id": "a", "description": "d", "tool": null, "dependsOn": []}]});
    let turns = vec![
        upp::ScriptTurn::text(plan.to_string()),
        upp::ScriptTurn::text("done"),
    ];
    let mut options = scripted(turns);
    options.execution = Arc::new(Plan::default());
    let turn = agent(options).query("go").await.unwrap();
    assert_eq!((turn.cycles, turn.data), (2, None));
}
