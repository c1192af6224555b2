//! An agent's tools with their compiled schemas.

use super::schedule;
use crate::depth::{self, MAX_DEPTH};
use crate::error::OptionsError;
use crate::schema::{self, Schema};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use upp::{Effect, Tool, ToolCall, ToolFailure};

/// The mismatch of arguments that are no object.
const NO_OBJECT: &str = "\n- they are not a JSON object";

/// The tools of an agent, by name.
pub(crate) struct Toolbox {
    tools: Arc<[Tool]>,
    /// Their positions, and their schemas unless they are external.
    by_name: BTreeMap<String, (usize, Option<Schema>)>,
}

impl Toolbox {
    /// Checks that names are unique, that dependencies exist without a cycle, and that each schema
    /// compiles. References to other documents are refused, never fetched.
    ///
    /// A schema that `known` has is not compiled again. An external tool's schema is only checked,
    /// because the client validates its arguments.
    pub(crate) fn new(tools: &[Tool], known: Option<&Self>) -> Result<Self, OptionsError> {
        let mut by_name = BTreeMap::new();
        for (index, tool) in tools.iter().enumerate() {
            let schema = match known.and_then(|known| known.schema(tool)) {
                Some(schema) => Ok(Some(schema)),
                None if tool.external => schema::check(&tool.parameters).map(|()| None),
                None => Schema::compile(&tool.parameters).map(Some),
            };
            let schema = schema.map_err(|source| OptionsError::InvalidSchema {
                tool: tool.name.clone(),
                source,
            })?;
            check_waiting(tool)?;
            if by_name.insert(tool.name.clone(), (index, schema)).is_some() {
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

    /// The compiled schema of exactly this tool.
    fn schema(&self, tool: &Tool) -> Option<Schema> {
        let (index, schema) = self.by_name.get(&tool.name)?;
        let own = self.tools.get(*index)?;
        let is_same = Arc::ptr_eq(&own.parameters, &tool.parameters);
        schema.clone().filter(|_| is_same && !tool.external)
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

    /// All tools, in the configured order.
    pub(crate) fn tools(&self) -> &Arc<[Tool]> {
        &self.tools
    }

    /// The tool of this name.
    pub(crate) fn get(&self, name: &str) -> Option<&Tool> {
        let (index, _) = self.by_name.get(name)?;
        self.tools.get(*index)
    }

    /// Parses and checks the arguments of a call. A failure is an error result that describes the
    /// mismatches to the model.
    pub(crate) fn check(&self, call: &ToolCall) -> Result<Value, ToolFailure> {
        let value = upp::arguments_of(call)?;
        if depth::is_too_deep(&value) {
            return Err(ToolFailure::new(format!(
                "Tool '{}' was not run: the arguments are nested too deeply, more than {MAX_DEPTH} \
                 levels.",
                call.tool_name
            )));
        }
        if let Some(breaches) = self.breaches(&call.tool_name, &value) {
            return Err(ToolFailure::new(format!(
                "Tool '{}' was not run: the arguments do not match its schema:{breaches}\n\
                 Correct them and call the tool again.",
                call.tool_name
            )));
        }
        Ok(value)
    }

    /// The mismatches of these arguments with the tool's schema, one for each line; none if they
    /// match.
    pub(crate) fn breaches(&self, name: &str, value: &Value) -> Option<String> {
        match self.by_name.get(name)? {
            (_, Some(schema)) => schema.mismatches(value),
            (_, None) => (!value.is_object()).then(|| NO_OBJECT.to_owned()),
        }
    }
}

/// Checks that the tool's declarations are consistent.
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
