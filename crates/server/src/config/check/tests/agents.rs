use super::{parse, refused};
use crate::config::{LevelConfig, MiddlewareConfig, StrategyConfig, ToolRef};
use serde_json::json;
use upp::ToolChoice;

pub(super) const BEFORE: &str = "[models.m]\nprovider = \"scripted\"\n\
    [mcp.files]\ncommand = \"files\"\nprefix = \"f_\"\ndeny = [\"wipe\"]\n\
    [agents.b]\nmodel = \"m\"\n\
    [agents.a]\nmodel = \"m\"\n";

#[test]
fn every_setting_of_an_agent_is_read() {
    let config = parse(&format!(
        r#"{BEFORE}
        description = "Does it."
        system_file = "system.md"
        tools = ["compute", "mcp:files", "read_file"]
        handoffs = ["b"]
        requires_approval = ["compute", "mcp:files/write", "find"]
        tool_choice = {{ tool = "mcp:files/read" }}
        strategy = {{ kind = "plan", max_plan_steps = 5, allow_replan = false, plan_schema = {{ type = "object" }} }}
        max_tool_rounds = 9
        structure = {{ type = "object", properties = {{ a = {{ type = "string" }} }} }}
        middleware = [
            "logging",
            {{ kind = "logging", level = "debug", include_messages = true, include_timing = false }},
            {{ kind = "prune-tool-outputs", usable = 10, protect_recent = 5, placeholder = "-" }},
            {{ kind = "sliding-window", max_messages = 7 }},
            {{ kind = "summarise", model = "m", threshold = 9, keep_recent = 2, prompt = "Sum.", params = {{ max_tokens = 5 }} }},
        ]
        params = {{ temperature = 0.5 }}
        [[agents.a.external]]
        name = "ask_user"
        description = "Asks."
        parameters = {{ type = "object" }}
        [[agents.a.subagents]]
        agent = "b"
        name = "find"
        description = "Finds."
        parameters = {{ type = "object", properties = {{ query = {{ type = "string" }} }}, required = ["query"] }}
        prompt = "Find: {{query}}"
        propagate_events = false
        "#
    ))
    .unwrap();
    let agent = &config.agents["a"];
    assert_eq!(agent.description.as_deref(), Some("Does it."));
    assert_eq!(agent.system_file.as_deref().unwrap(), "system.md");
    let tools: Vec<String> = agent.tools.iter().map(ToString::to_string).collect();
    assert_eq!(tools, ["compute", "mcp:files", "read_file"]);
    assert_eq!(agent.handoffs, ["b"]);
    assert_eq!(agent.requires_approval.len(), 3);
    assert!(
        agent
            .requires_approval
            .contains(&ToolRef::parse("mcp:files/write"))
    );
    assert_eq!(agent.tool_choice, ToolChoice::Tool("f_read".to_owned()));
    let StrategyConfig::Plan {
        max_plan_steps,
        allow_replan: false,
        plan_schema: Some(schema),
    } = &agent.strategy
    else {
        panic!("{agent:?}")
    };
    assert_eq!(
        (max_plan_steps.unwrap().get(), schema),
        (5, &json!({"type": "object"}))
    );
    assert_eq!(agent.max_tool_rounds.unwrap().get(), 9);
    assert_eq!(agent.structure.as_ref().unwrap()["type"], "object");
    let names: Vec<_> = agent
        .middleware
        .iter()
        .map(MiddlewareConfig::name)
        .collect();
    assert_eq!(
        names,
        [
            "logging",
            "logging",
            "prune-tool-outputs",
            "sliding-window",
            "summarise"
        ]
    );
    assert_eq!(
        agent.middleware[0],
        MiddlewareConfig::Logging {
            level: LevelConfig::Info,
            include_messages: false,
            include_timing: true
        }
    );
    assert_eq!(agent.params["temperature"], 0.5);
    assert_eq!(agent.external[0].name, "ask_user");
    let subagent = &agent.subagents[0];
    assert_eq!(
        (subagent.agent.as_str(), subagent.name.as_str()),
        ("b", "find")
    );
    assert_eq!(subagent.prompt.render(&json!({"query": "x"})), "Find: x");
    assert!(!subagent.propagate_events);
}

#[test]
fn a_strategy_is_a_name_or_a_table() {
    let strategy = |text: &str| {
        let config = parse(&format!("{BEFORE}strategy = {text}\n")).unwrap();
        config.agents["a"].strategy.clone()
    };
    assert_eq!(strategy("\"loop\""), StrategyConfig::default());
    assert_eq!(
        strategy("\"react\""),
        StrategyConfig::React {
            max_steps: None,
            reasoning_prompt: None
        }
    );
    assert_eq!(
        strategy("{ kind = \"react\", max_steps = 3, reasoning_prompt = \"Think.\" }"),
        StrategyConfig::React {
            max_steps: 3.try_into().ok(),
            reasoning_prompt: Some("Think.".to_owned())
        }
    );
    assert_eq!(
        strategy("\"plan\""),
        StrategyConfig::Plan {
            max_plan_steps: None,
            allow_replan: true,
            plan_schema: None
        }
    );
    assert_eq!(
        strategy("{ kind = \"loop\", max_iterations = 2 }"),
        StrategyConfig::Loop {
            max_iterations: 2.try_into().ok()
        }
    );
}

#[test]
fn what_is_wrong_with_the_tools_of_an_agent_is_said_with_its_place() {
    refused(
        BEFORE,
        &[
            ("modell = \"m\"", 1, "unknown field `modell`"),
            (
                "tools = [\"compute\", \"telepathy\"]",
                21,
                "there is no tool \"telepathy\", expected one of: read_file, compute",
            ),
            ("tools = [\"record\"]", 10, "there is no tool \"record\""),
            (
                "tools = [\"compute\", \"compute\"]",
                21,
                "in the list already",
            ),
            (
                "tools = [\"mcp:nobody\"]",
                10,
                "there is no MCP server \"nobody\", expected one of: files",
            ),
            ("tools = [\"mcp:files/\"]", 10, "the tool has no name"),
            (
                "tools = [\"mcp:files/wipe\"]",
                10,
                "leave out the tool \"wipe\"",
            ),
            (
                "tools = [\"mcp:files\", \"mcp:files/read\"]",
                23,
                "in the list already",
            ),
            (
                "tools = [\"mcp:files/read\", \"mcp:files\"]",
                28,
                "mcp:files/read is in the list already",
            ),
            (
                "requires_approval = [\"compute\"]",
                22,
                "there is no tool of this agent \"compute\"",
            ),
        ],
    );
}

#[test]
fn what_is_wrong_with_an_agent_is_said_with_its_place() {
    refused(
        BEFORE,
        &[
            ("tool_choice = \"maybe\"", 15, "this is no tool choice"),
            (
                "tool_choice = { tool = \"compute\" }",
                15,
                "there is no tool of this agent",
            ),
            (
                "strategy = \"hope\"",
                12,
                "unknown variant `hope`, expected one of `loop`, `react`, `plan`",
            ),
            (
                "strategy = { kind = \"react\", max_plan_steps = 1 }",
                12,
                "unknown field `max_plan_steps`",
            ),
            (
                "strategy = { kind = \"loop\", max_iterations = 0 }",
                12,
                "expected a whole number",
            ),
            (
                "strategy = { kind = \"plan\", plan_schema = { type = 5 } }",
                12,
                "no usable JSON Schema",
            ),
            (
                "structure = { type = \"objekt\" }",
                13,
                "no usable JSON Schema",
            ),
            (
                "structure = { \"$ref\" = \"https://a.example/s\" }",
                13,
                "no usable JSON Schema",
            ),
            ("middleware = [\"loging\"]", 15, "unknown variant `loging`"),
            (
                "middleware = [\"sliding-window\"]",
                15,
                "missing field `max_messages`",
            ),
            (
                "middleware = [\"logging\", { kind = \"summarise\", model = \"x\" }]",
                26,
                "there is no model \"x\"",
            ),
            (
                "handoffs = [\"c\"]",
                13,
                "there is no agent \"c\", expected one of: a, b",
            ),
            ("handoffs = [\"a\"]", 13, "to itself"),
            ("handoffs = [\"b\", \"b\"]", 18, "twice"),
            ("max_tool_rounds = 0", 19, "expected a whole number"),
        ],
    );
    refused(
        &format!("{BEFORE}strategy = \"react\"\n"),
        &[("max_tool_rounds = 3", 19, "expected max_steps")],
    );
    refused(
        &format!("{BEFORE}system = \"x\"\n"),
        &[("system_file = \"y\"", 15, "both system and system_file")],
    );
    refused(
        &format!("{BEFORE}structure = {{ type = \"object\" }}\n"),
        &[(
            "structure_file = \"y\"",
            18,
            "both structure and structure_file",
        )],
    );
}

#[test]
fn an_agent_with_workers_has_every_setting_but_a_model() {
    let config = parse(
        r#"
        [models.m]
        provider = "scripted"
        [agents.desk]
        worker = { lease_s = 5, wait_s = 6, max_lost_leases = 7 }
        system = "You are brief."
        tools = ["compute"]
        requires_approval = ["compute"]
        compaction = { at_tokens = 100, model = "m" }
        [agents.usual]
        worker = {}
        "#,
    )
    .unwrap();
    let desk = &config.agents["desk"];
    let policy = desk.worker.unwrap();
    let times = (policy.lease.as_secs(), policy.wait.as_secs());
    assert_eq!((times, policy.max_lost_leases), ((5, 6), 7));
    assert_eq!(desk.model, "");
    let usual = config.agents["usual"].worker;
    assert_eq!(usual, Some(runtime::WorkerPolicy::default()));
}

#[test]
fn wrong_settings_of_workers_are_refused_at_their_place() {
    refused(
        "[models.m]\nprovider = \"scripted\"\n[agents.desk]\n",
        &[
            ("worker = { lease_s = 3601 }", 22, "at most 3600 seconds"),
            ("worker = { wait_s = 604801 }", 21, "at most 604800 seconds"),
            ("worker = { lease_s = 0 }", 22, "1 or more"),
            ("worker = { speed = 1 }", 12, "unknown field"),
        ],
    );
    refused(
        "[models.m]\nprovider = \"scripted\"\n[agents.desk]\nworker = {}\n",
        &[
            ("model = \"m\"", 9, "model or worker"),
            ("compaction = { at_tokens = 9 }", 14, "expected model"),
        ],
    );
}
