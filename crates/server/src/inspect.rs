//! Inspects a configuration without network requests: its agents, and the problems in it.

mod report;

pub use report::{AgentReport, ModelReport, SubagentReport, ToolKind, ToolReport};

use crate::config::{Checked, Config, FindingSeverity, StrategyConfig};
use crate::metrics::Metrics;
use crate::reactors::ConfiguredAgents;
use crate::serve::check_exposed;
use crate::{app, tls};
use agents::mcp::McpTransport;
use serde::Serialize;
use std::path::Path;
use std::sync::Arc;

/// The result of inspecting a configuration.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Inspection {
    /// The agents, by name.
    pub agents: Vec<AgentReport>,
    /// Errors and possible mistakes.
    pub findings: Vec<Found>,
}

/// A finding in a configuration or its agents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Found {
    /// The severity.
    #[serde(serialize_with = "word")]
    pub severity: FindingSeverity,
    /// The text of the finding.
    pub message: String,
    /// The line in the file, from 1, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// The column in characters, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<usize>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
fn word<S: serde::Serializer>(
    severity: &FindingSeverity,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(match severity {
        FindingSeverity::Error => "error",
        FindingSeverity::Warning => "warning",
    })
}

impl Inspection {
    /// How many findings keep the configuration from being served.
    pub fn n_errors(&self) -> usize {
        let errors = self.findings.iter();
        errors
            .filter(|it| it.severity == FindingSeverity::Error)
            .count()
    }
}

/// Inspects a configuration: builds its agents and reads files, but sends no requests and starts
/// nothing.
pub fn inspect(checked: Checked) -> Inspection {
    let config = Arc::new(checked.config);
    let mut findings: Vec<Found> = Vec::new();
    for finding in checked.findings {
        findings.push(Found {
            severity: finding.severity,
            line: Some(finding.error.line),
            column: Some(finding.error.column),
            message: finding.error.message,
        });
    }
    match ConfiguredAgents::new(
        Arc::clone(&config),
        Path::new("files"),
        None,
        &Metrics::default(),
    ) {
        Ok(agents) => abilities(&config, &agents, &mut findings),
        Err(error) => findings.push(found(FindingSeverity::Error, chain(&error))),
    }
    refusals(&config, &mut findings);
    places(&config, &mut findings);
    Inspection {
        agents: report::agents(&config),
        findings,
    }
}

fn found(severity: FindingSeverity, message: String) -> Found {
    Found {
        severity,
        message,
        line: None,
        column: None,
    }
}

/// Lists models that lack an ability which their agents need. Agents that could never call their model
/// are not built.
fn abilities(config: &Config, agents: &ConfiguredAgents, findings: &mut Vec<Found>) {
    let agents = agents.agents();
    for (name, agent) in agents.iter() {
        let Some(wanted) = config.agents.get(name) else {
            continue;
        };
        let plans = matches!(wanted.strategy, StrategyConfig::Plan { .. });
        if plans && !agent.model().capabilities().structured_output {
            let model = &wanted.model;
            let message = format!(
                "the agent {name:?} plans, and its model {model:?} has no structured output"
            );
            findings.push(found(FindingSeverity::Warning, message));
        }
    }
}

/// Lists errors that prevent the server from starting, apart from agents.
fn refusals(config: &Config, findings: &mut Vec<Found>) {
    let mut refused = |error: &dyn std::error::Error| {
        findings.push(found(FindingSeverity::Error, chain(error)));
    };
    if let Some(address) = config.server.listen
        && let Err(error) = check_exposed(config, address)
    {
        refused(&error);
    }
    if let Some(files) = &config.server.tls
        && let Err(error) = tls::check(files)
    {
        refused(&error);
    }
    if let Err(error) = app::tokens(config) {
        refused(&error);
    }
}

/// Finds missing directories and programs.
fn places(config: &Config, findings: &mut Vec<Found>) {
    let mut absent = |what: String, path: &Path| {
        let message = format!("{what} is not there: {}", path.display());
        findings.push(found(FindingSeverity::Warning, message));
    };
    if let Some(root) = &config.tools.read_file_root
        && !root.is_dir()
    {
        absent("read_file_root of [tools]".into(), root);
    }
    for (name, server) in &config.mcp {
        let McpTransport::Stdio(stdio) = &server.transport else {
            continue;
        };
        let program = Path::new(&stdio.command);
        // A bare name is looked up where the server runs.
        if program.components().count() > 1 && stdio.cwd.is_none() && !program.is_file() {
            absent(format!("the command of the MCP server {name:?}"), program);
        }
        if let Some(cwd) = &stdio.cwd
            && !cwd.is_dir()
        {
            absent(format!("cwd of the MCP server {name:?}"), cwd);
        }
    }
}

/// An error with all its causes, on one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    text
}
