//! `agents`: shows the agents of a configuration without calling a model.

use crate::args::Agents;
use crate::error::CliError;
use crate::output::{BAD, BOLD, DIM, GOOD, Output, clean};
use crate::store::StoreLocation;
use serde_json::json;
use server::config::FindingSeverity;
use server::inspect::{AgentReport, Found, SubagentReport, ToolReport};
use server::{Inspection, inspect};

pub(crate) fn agents(
    place: &StoreLocation,
    command: &Agents,
    output: &Output,
) -> Result<(), CliError> {
    match command {
        Agents::Check => check(place, output),
        Agents::List => list(place, output),
    }
}

fn check(place: &StoreLocation, output: &Output) -> Result<(), CliError> {
    let inspection = match place.checked() {
        Ok(checked) => inspect(checked),
        // It can't be understood, so there is nothing to show but why.
        Err(CliError::Config(_, error)) => Inspection {
            agents: Vec::new(),
            findings: vec![Found {
                severity: FindingSeverity::Error,
                message: error.message,
                line: Some(error.line),
                column: Some(error.column),
            }],
        },
        Err(error) => return Err(error),
    };
    for agent in &inspection.agents {
        output.value(&json!({ "agent": agent }))?;
        output.line(&agent_lines(agent))?;
    }
    for finding in &inspection.findings {
        output.value(&json!({ "finding": finding }))?;
        output.line(&finding_line(finding))?;
    }
    match inspection.n_errors() {
        0 => output.line(&verdict(&inspection)),
        n_findings => Err(CliError::Unhealthy { n_findings }),
    }
}

fn list(place: &StoreLocation, output: &Output) -> Result<(), CliError> {
    let inspection = inspect(place.checked()?);
    for agent in &inspection.agents {
        output.value(&json!({
            "name": agent.name,
            "isDefault": agent.is_default,
            "description": agent.description,
            "provider": agent.model.provider,
            "model": agent.model.id,
        }))?;
        output.line(&title(agent))?;
    }
    Ok(())
}

fn verdict(inspection: &Inspection) -> String {
    let count = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    let agents = count(inspection.agents.len(), "agent");
    let warnings = count(inspection.findings.len(), "warning");
    format!("{GOOD}ok{GOOD:#}  {agents}, {warnings}; no model was called")
}

fn finding_line(finding: &Found) -> String {
    let word = match finding.severity {
        FindingSeverity::Error => format!("{BAD}error{BAD:#}"),
        FindingSeverity::Warning => format!("{BOLD}warning{BOLD:#}"),
    };
    let place = match (finding.line, finding.column) {
        (Some(line), Some(column)) => format!("line {line}, column {column}: "),
        _ => String::new(),
    };
    format!("{word} {place}{}", clean(&finding.message))
}

fn title(agent: &AgentReport) -> String {
    let name = clean(&agent.name);
    let default = if agent.is_default { " (default)" } else { "" };
    let model = model(agent);
    let description = agent.description.as_deref().map(clean);
    let description = description.map(|text| format!("  {}", text.replace('\n', " ")));
    let description = description.unwrap_or_default();
    format!("{BOLD}{name}{BOLD:#}{default}  {DIM}{model}{DIM:#}{description}")
}

fn model(agent: &AgentReport) -> String {
    let (model, id) = (&agent.model, agent.model.id.as_deref());
    clean(&match id {
        Some(id) => format!("{id} by {}", model.provider),
        None => model.provider.clone(),
    })
}

fn agent_lines(agent: &AgentReport) -> String {
    let mut lines = vec![title(agent)];
    let mut say = |what: &str, text: &str| lines.push(format!("  {what:<12}{}", clean(text)));
    let model = &agent.model;
    let key = match (model.n_keys, model.key_envs.is_empty()) {
        (_, true) => "no key".to_owned(),
        (0, false) => format!("no key in {}", model.key_envs.join(", ")),
        (_, false) => format!("key from {}", model.key_envs.join(", ")),
    };
    let retry = model.retry.as_deref().unwrap_or("none");
    say("model", &format!("{}, {key}, retries: {retry}", model.name));
    say("strategy", &agent.strategy);
    if agent.structure {
        say("answers", "in a structure");
    }
    if let Some(choice) = &agent.tool_choice {
        say("must call", choice);
    }
    let width = agent.tools.iter().map(|tool| tool.name.len()).max();
    for (at, tool) in agent.tools.iter().enumerate() {
        let text = tool_line(tool, width.unwrap_or_default());
        say(if at == 0 { "tools" } else { "" }, &text);
    }
    let mut tree = Vec::new();
    branches(&agent.subagents, 0, &mut tree);
    for (at, branch) in tree.iter().enumerate() {
        say(if at == 0 { "sub-agents" } else { "" }, branch);
    }
    if !agent.handoffs.is_empty() {
        say("hands over", &format!("to {}", agent.handoffs.join(", ")));
    }
    if !agent.middleware.is_empty() {
        say("middleware", &agent.middleware.join(", "));
    }
    lines.push(String::new());
    lines.join("\n")
}

fn tool_line(tool: &ToolReport, width: usize) -> String {
    let effect = json!(tool.effect);
    let effect = effect.as_str().unwrap_or_default();
    let approval = if tool.requires_approval {
        ", needs approval"
    } else {
        ""
    };
    let (name, kind) = (&tool.name, tool.kind.as_str());
    format!("{name:<width$}  {kind}, {effect}{approval}")
}

fn branches(subagents: &[SubagentReport], depth: usize, lines: &mut Vec<String>) {
    for subagent in subagents {
        let (indent, tool) = (depth * 2, &subagent.tool);
        lines.push(format!("{:indent$}{tool} → {}", "", subagent.agent));
        branches(&subagent.subagents, depth + 1, lines);
    }
}
