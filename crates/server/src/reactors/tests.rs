use super::*;
use serde_json::json;
use upp::{Effect, ToolChoice};

/// Agents of this text, with files in a directory.
fn made(text: &str, directory: &Path) -> Result<ConfiguredAgents, AgentsError> {
    let text = text.replace("DIR", &directory.display().to_string());
    let config = Config::parse(&text, &|_| None).unwrap_or_else(|error| panic!("{error}"));
    ConfiguredAgents::new(Arc::new(config), directory, None, &Metrics::default())
}

fn agent(text: &str) -> Agent {
    let directory = tempfile::tempdir().unwrap();
    let agents = made(text, directory.path()).unwrap();
    agents.agents()["a"].clone()
}

const BEFORE: &str =
    "[models.m]\nprovider = \"scripted\"\nparams = { a = 1, b = 1 }\n[agents.a]\nmodel = \"m\"\n";

#[test]
fn an_agents_parameters_win_over_its_models() {
    let agent = agent(&format!("{BEFORE}params = {{ b = 2, c = 2 }}\n"));
    let params = serde_json::to_value(&*agent.options().params).unwrap();
    assert_eq!(params, json!({"a": 1, "b": 2, "c": 2}));
}

#[test]
fn a_strategy_is_the_one_that_was_asked_for() {
    let strategy = |text: &str| {
        agent(&format!("{BEFORE}{text}\n"))
            .options()
            .execution
            .name()
    };
    assert_eq!(strategy(""), "loop");
    assert_eq!(strategy("strategy = \"react\""), "react");
    assert_eq!(
        strategy("strategy = { kind = \"plan\", max_plan_steps = 3 }"),
        "plan"
    );
    let limited = agent(&format!("{BEFORE}max_tool_rounds = 4\n"));
    assert_eq!(limited.options().tool_strategy.max_iterations, Some(4));
    assert_eq!(agent(BEFORE).options().tool_strategy.max_iterations, None);
}

#[test]
fn layers_are_in_the_order_of_the_file() {
    let agent = agent(&format!(
        "{BEFORE}middleware = [\"prune-tool-outputs\", {{ kind = \"summarise\", model = \"m\" }}, \
         {{ kind = \"sliding-window\", max_messages = 5 }}, \"logging\"]\n"
    ));
    let layers = agent.options().middleware.iter();
    let names: Vec<&str> = layers.map(|layer| layer.name()).collect();
    assert_eq!(
        names,
        [
            "prune-tool-outputs",
            "summarise",
            "sliding-window",
            "logging"
        ]
    );
}

#[test]
fn tools_wait_for_a_person_where_that_is_asked() {
    let agent = agent(&format!(
        "{BEFORE}tools = [\"compute\", \"read_file\", \"mcp:s/one\", \"mcp:s/two\"]\n\
         requires_approval = [\"read_file\", \"mcp:s/two\"]\ntool_choice = \"required\"\n\
         [[agents.a.external]]\nname = \"ask\"\ndescription = \"Asks.\"\nparameters = {{ type = \"object\" }}\n\
         [mcp.s]\ncommand = \"nothing\"\nprefix = \"s_\"\neffects = {{ one = \"pure\" }}\n"
    ));
    let tools = agent.tools().iter();
    let tools: Vec<_> = tools
        .map(|it| {
            (
                it.name.as_str(),
                it.requires_approval,
                it.external,
                it.effect,
            )
        })
        .collect();
    assert_eq!(
        tools,
        [
            ("compute", false, false, Effect::Pure),
            ("read_file", true, false, Effect::Pure),
            ("s_one", false, false, Effect::Pure),
            ("s_two", true, false, Effect::Effect),
            ("ask", false, true, Effect::Effect),
        ]
    );
    assert_eq!(agent.options().tool_choice, ToolChoice::Required);
}

#[test]
fn prompt_and_structure_may_stand_in_files() {
    let directory = tempfile::tempdir().unwrap();
    let text =
        format!("{BEFORE}system_file = \"DIR/system.md\"\nstructure_file = \"DIR/schema.json\"\n");
    let error = || made(&text, directory.path()).err().unwrap().to_string();
    assert!(error().contains("system.md of the agent \"a\" can't be read"));
    std::fs::write(directory.path().join("system.md"), "Be kind.").unwrap();
    assert!(error().contains("schema.json of the agent \"a\" can't be read"));
    std::fs::write(directory.path().join("schema.json"), "{\"type\": 5}").unwrap();
    assert!(error().contains("is no usable JSON Schema"));
    let endless = "{\n  \"properties\": {\"a\": {\"$ref\": \"#/none\"}}}";
    std::fs::write(directory.path().join("schema.json"), endless).unwrap();
    assert!(error().contains("line 2, column 32"), "{}", error());
    std::fs::write(
        directory.path().join("schema.json"),
        "{\"type\": \"object\"}",
    )
    .unwrap();
    let agents = made(&text, directory.path()).unwrap();
    let agent = agents.agents()["a"].clone();
    assert_eq!(agent.system(), Some("Be kind."));
    let structure = agent.options().structure.as_deref();
    assert_eq!(structure, Some(&json!({"type": "object"})));
}
