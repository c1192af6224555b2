//! An agent's tools with their compiled schemas.

use super::schedule;
use crate::depth::{self, MAX_DEPTH};
use crate::error::OptionsError;
use jsonschema::Validator;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;
use upp::{Effect, Tool, ToolCall, ToolFailure};

/// How many breaches of a schema the model is told at once.
const N_BREACHES: usize = 8;

/// The tools of an agent, by name.
pub(crate) struct Toolbox {
    tools: Arc<[Tool]>,
    by_name: BTreeMap<String, (usize, Validator)>,
}

impl Toolbox {
    /// Checks that names are unique, dependencies exist and make no cycle, and that each schema
    /// compiles. References to other documents are refused, never fetched.
    pub(crate) fn new(tools: &[Tool]) -> Result<Self, OptionsError> {
        let mut by_name = BTreeMap::new();
        for (index, tool) in tools.iter().enumerate() {
            let validator = jsonschema::options()
                .offline()
                .build(&tool.parameters)
                .map_err(|source| OptionsError::InvalidSchema {
                    tool: tool.name.clone(),
                    source: Box::new(source),
                })?;
            check_waiting(tool)?;
            if by_name
                .insert(tool.name.clone(), (index, validator))
                .is_some()
            {
                return Err(OptionsError::DuplicateTool {
                    name: tool.name.clone(),
                });
            }
        }
        let toolbox = Self {
            tools: tools.into(),
            by_name,
        };
        toolbox.check_dependencies()?;
        Ok(toolbox)
    }

    fn check_dependencies(&self) -> Result<(), OptionsError> {
        let mut needs = Vec::with_capacity(self.tools.len());
        for tool in self.tools.iter() {
            let mut indices = BTreeSet::new();
            for name in &tool.depends_on {
                let (index, _) =
                    self.by_name
                        .get(name)
                        .ok_or_else(|| OptionsError::UnknownDependency {
                            tool: tool.name.clone(),
                            name: name.clone(),
                        })?;
                indices.insert(*index);
            }
            needs.push(indices);
        }
        schedule::topological(&needs).map(|_| ()).map_err(|cycle| {
            let tools = cycle.into_iter().filter_map(|index| self.tools.get(index));
            OptionsError::DependencyCycle {
                tools: tools.map(|tool| tool.name.clone()).collect(),
            }
        })
    }

    /// All tools, in the order they were given.
    pub(crate) fn tools(&self) -> &Arc<[Tool]> {
        &self.tools
    }

    /// The tool of this name.
    pub(crate) fn get(&self, name: &str) -> Option<&Tool> {
        let (index, _) = self.by_name.get(name)?;
        self.tools.get(*index)
    }

    /// Reads and checks the arguments of a call; a failure tells the model how to correct them.
    pub(crate) fn check(&self, call: &ToolCall) -> Result<Value, ToolFailure> {
        let value = upp::arguments_of(call)?;
        if depth::is_too_deep(&value) {
            return Err(ToolFailure::new(format!(
                "Tool '{}' was not run: the arguments are nested too deeply, more than {MAX_DEPTH} \
                 levels.",
                call.tool_name
            )));
        }
        match self.by_name.get(&*call.tool_name) {
            Some((_, validator)) if !validator.is_valid(&value) => {
                let breaches = breaches(validator, &value);
                Err(ToolFailure::new(format!(
                    "Tool '{}' was not run: the arguments do not match its schema:{breaches}\n\
                     Correct them and call the tool again.",
                    call.tool_name
                )))
            }
            Some(_) | None => Ok(value),
        }
    }

    /// What is wrong with these arguments of the tool, one line each.
    pub(crate) fn breaches(&self, name: &str, value: &Value) -> Option<String> {
        let (_, validator) = self.by_name.get(name)?;
        (!validator.is_valid(value)).then(|| breaches(validator, value))
    }
}

/// Checks that what the tool says of itself can be kept.
fn check_waiting(tool: &Tool) -> Result<(), OptionsError> {
    let name = || tool.name.clone();
    if tool.effect == Effect::Reconcilable && tool.reconcile.is_none() {
        return Err(OptionsError::NoReconcile { tool: name() });
    }
    if tool.external && tool.requires_approval {
        return Err(OptionsError::ExternalApproval { tool: name() });
    }
    Ok(())
}

fn breaches(validator: &Validator, value: &Value) -> String {
    let mut text = String::new();
    for breach in validator.iter_errors(value).take(N_BREACHES) {
        let pointer = breach.instance_path().as_str();
        let _ = write!(text, "\n- at \"{pointer}\": {}", breach.masked());
    }
    text
}
