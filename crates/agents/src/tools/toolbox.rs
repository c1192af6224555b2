//! An agent's tools with their compiled schemas.

use super::schedule;
use crate::depth::{self, MAX_DEPTH};
use crate::error::OptionsError;
use crate::schema::{self, Schema, SchemaError};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use upp::{Effect, Tool, ToolCall, ToolFailure};

/// The mismatch of arguments that are no object.
const NO_OBJECT: &str = "\n- they are not a JSON object";

/// The tools of an agent, by name.
pub(crate) struct Toolbox {
    tools: Arc<[Tool]>,
    by_name: BTreeMap<String, Entry>,
}

/// A tool's position, and its compiled schemas.
struct Entry {
    index: usize,
    schemas: Schemas,
}

/// The schemas that values are compared with here.
#[derive(Clone, Default)]
struct Schemas {
    /// Of the arguments; none for an external tool.
    arguments: Option<Schema>,
    /// Of the results of an external tool, if it declares one.
    result: Option<Schema>,
}

impl Schemas {
    fn compile(tool: &Tool) -> Result<Self, SchemaError> {
        if !tool.external {
            let arguments = Some(Schema::compile(&tool.parameters)?);
            let result = None;
            return Ok(Self { arguments, result });
        }
        schema::check(&tool.parameters)?;
        let result = tool.result.as_deref().map(Schema::compile).transpose()?;
        let arguments = None;
        Ok(Self { arguments, result })
    }
}

impl Toolbox {
    /// Checks that names are unique, that dependencies exist without a cycle, and that each schema
    /// compiles. References to other documents are refused, never fetched.
    ///
    /// A schema that `known` has is not compiled again. The schema of an external tool's arguments is only
    /// checked, because the client validates them.
    pub(crate) fn new(tools: &[Tool], known: Option<&Self>) -> Result<Self, OptionsError> {
        let mut by_name = BTreeMap::new();
        for (index, tool) in tools.iter().enumerate() {
            let schemas = match known.and_then(|known| known.schemas(tool)) {
                Some(schemas) => Ok(schemas),
                None => Schemas::compile(tool),
            };
            let schemas = schemas.map_err(|source| OptionsError::InvalidSchema {
                tool: tool.name.clone(),
                source,
            })?;
            check_waiting(tool)?;
            let entry = Entry { index, schemas };
            if by_name.insert(tool.name.clone(), entry).is_some() {
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

    /// The compiled schemas of exactly this tool.
    fn schemas(&self, tool: &Tool) -> Option<Schemas> {
        let entry = self.by_name.get(&tool.name)?;
        let own = self.tools.get(entry.index)?;
        let is_same = Arc::ptr_eq(&own.parameters, &tool.parameters)
            && own.external == tool.external
            && own.result.as_ref().map(Arc::as_ptr) == tool.result.as_ref().map(Arc::as_ptr);
        is_same.then(|| entry.schemas.clone())
    }

    fn check_dependencies(&self) -> Result<(), OptionsError> {
        let mut needs = Vec::with_capacity(self.tools.len());
        for tool in self.tools.iter() {
            let mut indices = BTreeSet::new();
            for name in &tool.depends_on {
                let entry =
                    self.by_name
                        .get(name)
                        .ok_or_else(|| OptionsError::UnknownDependency {
                            tool: tool.name.clone(),
                            name: name.clone(),
                        })?;
                indices.insert(entry.index);
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
        let entry = self.by_name.get(name)?;
        self.tools.get(entry.index)
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
        match &self.by_name.get(name)?.schemas.arguments {
            Some(schema) => schema.mismatches(value),
            None => (!value.is_object()).then(|| NO_OBJECT.to_owned()),
        }
    }

    /// The mismatches of a client's result with the schema that the tool declares, one for each line;
    /// none if they match or if there is no schema. A text may be the JSON of the result: some protocols
    /// have texts only.
    pub(crate) fn result_breaches(&self, name: &str, value: &Value) -> Option<String> {
        let schema = self.by_name.get(name)?.schemas.result.as_ref()?;
        let breaches = schema.mismatches(value)?;
        let json = value
            .as_str()
            .and_then(|text| serde_json::from_str(text).ok());
        let json: Option<Value> = json.filter(|json| !depth::is_too_deep(json));
        match json {
            Some(json) => schema.mismatches(&json),
            None => Some(breaches),
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
