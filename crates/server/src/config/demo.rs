//! The agents of a server without a configuration. They need no network and no key, and show one feature
//! each.

use super::{
    AgentSettings, ModelConfig, PromptTemplate, ScriptSource, Starter, SubagentConfig, ToolRef,
};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use upp::{Script, ScriptTurn};

/// The default agent.
pub(super) const AGENT: &str = "demo";
const MODEL: &str = "scripted";
/// The model of the agent that offers a choice.
const CHOICE_MODEL: &str = "scripted-choice";

/// The scripted models.
pub(super) fn models() -> BTreeMap<String, ModelConfig> {
    let model = |script| ModelConfig::Scripted {
        model: None,
        delay: None,
        script,
        params: Map::new(),
    };
    let choice = Some(ScriptSource::Inline(choice()));
    BTreeMap::from([
        (MODEL.into(), model(None)),
        (CHOICE_MODEL.into(), model(choice)),
    ])
}

/// The agents: `demo` calls tools, `careful` waits for an approval, `chooser` offers a choice, and `lead`
/// calls `researcher` as a sub-agent.
pub(super) fn agents() -> BTreeMap<String, AgentSettings> {
    let agent = |description: &str, tools: &[&str]| AgentSettings {
        model: MODEL.into(),
        description: Some(description.to_owned()),
        tools: tools.iter().copied().map(ToolRef::parse).collect(),
        ..AgentSettings::default()
    };
    let demo = AgentSettings {
        description: None,
        ..agent("", &["read_file", "compute"])
    };
    let careful = AgentSettings {
        requires_approval: BTreeSet::from([ToolRef::parse("compute")]),
        ..agent("Computes after you have allowed it.", &["compute"])
    };
    let chooser = AgentSettings {
        model: CHOICE_MODEL.into(),
        ..agent("Offers a choice of seats.", &[])
    };
    let lead = AgentSettings {
        subagents: researcher().into_iter().collect(),
        ..agent("Gives its work to a sub-agent.", &[])
    };
    BTreeMap::from([
        (AGENT.into(), demo),
        ("careful".into(), careful),
        ("chooser".into(), chooser),
        ("lead".into(), lead),
        (
            "researcher".into(),
            agent("Works for the agent lead.", &["compute"]),
        ),
    ])
}

/// First messages for the demo agents.
pub(super) fn starters() -> Vec<Starter> {
    let all = [
        ("Call a tool", "compute 2+3*4", AGENT),
        ("Ask before a tool runs", "compute 6*7", "careful"),
        ("Offer a choice", "Which seats are there?", "chooser"),
        (
            "Write slowly: reload the page, or stop the server",
            "slow say 200 words",
            AGENT,
        ),
        (
            "Call a sub-agent",
            "delegate \"think, slow 100ms compute 17*3\"",
            "lead",
        ),
        ("Fork: answer, then use Fork below", "say 40 words", AGENT),
    ];
    let starter = |(label, text, agent): (&str, &str, &str)| Starter {
        label: label.to_owned(),
        text: text.to_owned(),
        agent: agent.to_owned(),
    };
    all.map(starter).into()
}

fn researcher() -> Option<SubagentConfig> {
    let parameters = json!({
        "type": "object",
        "properties": {"task": {"type": "string", "description": "What it does"}},
        "required": ["task"],
    });
    Some(SubagentConfig {
        agent: "researcher".to_owned(),
        name: "delegate".to_owned(),
        description: "Gives a task to a sub-agent.".to_owned(),
        prompt: PromptTemplate::parse("{task}", &parameters).ok()?,
        parameters,
        propagate_events: true,
    })
}

/// A script that offers a choice, and answers what comes after it.
fn choice() -> Script {
    let question = json!({
        "$schema": "https://aitp.dev/capabilities/aitp-02-decisions/v1.0.0/schema.json",
        "request_decision": {
            "id": "seat",
            "title": "Which seat do you want?",
            "description": "This is a decision request of AITP. The server checks the answer.",
            "type": "radio",
            "options": [
                {"id": "window", "name": "Window", "description": "Row 12, left"},
                {"id": "aisle", "name": "Aisle", "description": "Row 14, right"},
                {"id": "any", "name": "Any seat", "description": "Chosen at the gate"}
            ]
        }
    });
    let turn = |text: String| ScriptTurn {
        text: Some(text),
        ..ScriptTurn::default()
    };
    Script {
        turns: vec![
            turn(Value::to_string(&question)),
            turn("Thank you. The seat is noted.".to_owned()),
        ],
        repeat_last: true,
        per_turn: false,
    }
}
