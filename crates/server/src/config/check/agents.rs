//! Agents.

use super::links::Link;
use super::names::Names;
use super::{Checker, FindingSeverity};
use crate::config::file::{Agent, Compaction, External, Worker};
use crate::config::{
    AgentSettings, CompactionConfig, Config, ConfigError, ExternalTool, MiddlewareConfig,
    ModelConfig, StrategyConfig,
};
use runtime::WorkerPolicy;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::num::{NonZeroU32, NonZeroU64};
use std::ops::Range;
use std::time::Duration;
use toml::Spanned;

/// The parameter with the limit of an answer, in tokens.
const MAX_TOKENS: &str = "max_tokens";
/// Maximum duration of a worker's lease, in seconds.
const MAX_LEASE: u64 = 3600;
/// Maximum time that a step waits for a worker, in seconds.
const MAX_WAIT: u64 = 7 * 24 * 3600;

/// Whether requests to a model have a limit of tokens, or need none.
fn has_token_limit(model: &ModelConfig) -> bool {
    match model {
        ModelConfig::Scripted { .. } => true,
        ModelConfig::Remote(remote) => {
            !remote.provider.needs_max_tokens()
                || remote.default_max_tokens.is_some()
                || remote.params.contains_key(MAX_TOKENS)
        }
    }
}

impl Checker<'_> {
    pub(super) fn agents(
        &self,
        file: BTreeMap<String, Spanned<Agent>>,
        config: &mut Config,
    ) -> Result<(), ConfigError> {
        let names: BTreeSet<String> = file.keys().cloned().collect();
        let mut links = BTreeMap::new();
        for (name, agent) in file {
            let span = agent.span();
            let mut agent = agent.into_inner();
            let calls = agent.subagents.iter().map(|subagent| Link {
                to: subagent.agent.get_ref().clone(),
                span: subagent.agent.span(),
            });
            links.insert(name.clone(), calls.collect());
            let agent = match agent.remote.take() {
                Some(remote) => self.remote_agent(agent, remote, &config.outbound)?,
                None => self.agent((&name, span), agent, config, &names)?,
            };
            config.agents.insert(name, agent);
        }
        self.links(&links)
    }

    fn agent(
        &self,
        (name, span): (&str, Range<usize>),
        agent: Agent,
        config: &Config,
        agents: &BTreeSet<String>,
    ) -> Result<AgentSettings, ConfigError> {
        let worker = agent
            .worker
            .as_ref()
            .map(|it| self.worker(it))
            .transpose()?;
        match (&agent.model, &agent.worker) {
            (Some(model), None) => self.known("model", model, config.models.keys())?,
            (None, Some(_)) => {}
            (Some(model), Some(_)) => {
                let message = "workers answer in place of a model, expected model or worker";
                return Err(self.wrong(model, message));
            }
            (None, None) => {
                let message = format!("the agent {name:?} needs a model or a worker, or is remote");
                return Err(ConfigError::at(self.text, span, message));
            }
        }
        let mut names = Names::new(self, config);
        for tool in &agent.tools {
            names.tool(tool)?;
        }
        let external = self.external(agent.external, &mut names)?;
        let mut subagents = Vec::new();
        for subagent in agent.subagents {
            names.own(&subagent.name)?;
            self.known("agent", &subagent.agent, agents)?;
            subagents.push(self.subagent(subagent)?);
        }
        let requires_approval = names.approvals(&agent.requires_approval)?;
        let tool_choice = agent.tool_choice.as_ref().map(|it| names.tool_choice(it));
        if let (Some(_), Some(file)) = (&agent.system, &agent.system_file) {
            let message = "there are both system and system_file, expected one of them";
            return Err(self.wrong(file, message));
        }
        if let (Some(_), Some(file)) = (&agent.structure, &agent.structure_file) {
            let message = "there are both structure and structure_file, expected one of them";
            return Err(self.wrong(file, message));
        }
        if let Some(structure) = &agent.structure {
            self.schema(structure, structure.get_ref())?;
        }
        let strategy = agent.strategy.as_ref().map(|it| self.strategy(it));
        let strategy = strategy.transpose()?.unwrap_or_default();
        if let (StrategyConfig::React { .. }, Some(rounds)) = (&strategy, &agent.max_tool_rounds) {
            let message = "the strategy \"react\" counts steps, expected max_steps in strategy";
            return Err(self.wrong(rounds, message));
        }
        let has_limit = agent.params.contains_key(MAX_TOKENS);
        let by_name = |model: &Spanned<String>| config.models.get(model.get_ref());
        let is_limited = agent
            .model
            .as_ref()
            .and_then(by_name)
            .is_none_or(has_token_limit);
        if let Some(model) = agent.model.as_ref().filter(|_| !has_limit && !is_limited) {
            let message = "the provider of this model requires a limit of tokens, so every call will fail; expected \
                default_max_tokens of the model, or max_tokens in params";
            self.found(FindingSeverity::Warning, model.span(), message);
        }
        let middleware = agent.middleware.iter();
        let middleware = middleware.map(|layer| self.middleware(layer, config));
        let model = agent.model.map(Spanned::into_inner);
        let compaction = agent.compaction;
        let compaction = compaction.map(|it| self.compaction(it, model.as_deref(), config));
        Ok(AgentSettings {
            compaction: compaction.transpose()?,
            tool_choice: tool_choice.transpose()?.unwrap_or_default(),
            middleware: middleware.collect::<Result<_, _>>()?,
            handoffs: self.handoffs(name, &agent.handoffs, agents)?,
            model: model.unwrap_or_default(),
            remote: None,
            worker,
            description: agent.description,
            system: agent.system.map(Spanned::into_inner),
            system_file: agent.system_file.map(Spanned::into_inner),
            tools: names.into_tools(),
            external,
            subagents,
            requires_approval,
            strategy,
            max_tool_rounds: agent.max_tool_rounds.map(Spanned::into_inner),
            structure: agent.structure.map(Spanned::into_inner),
            structure_file: agent.structure_file.map(Spanned::into_inner),
            params: agent.params,
        })
    }

    fn worker(&self, worker: &Spanned<Worker>) -> Result<WorkerPolicy, ConfigError> {
        let usual = WorkerPolicy::default();
        let Worker {
            lease_s,
            wait_s,
            max_lost_leases,
        } = worker.get_ref();
        let seconds = |place: &Option<Spanned<NonZeroU64>>, usual, max| match place {
            None => Ok(usual),
            Some(n) if n.get_ref().get() > max => {
                Err(self.wrong(n, format!("expected at most {max} seconds")))
            }
            Some(n) => Ok(Duration::from_secs(n.get_ref().get())),
        };
        Ok(WorkerPolicy {
            lease: seconds(lease_s, usual.lease, MAX_LEASE)?,
            wait: seconds(wait_s, usual.wait, MAX_WAIT)?,
            max_lost_leases: max_lost_leases.map_or(usual.max_lost_leases, NonZeroU32::get),
        })
    }

    fn external(
        &self,
        tools: Vec<External>,
        names: &mut Names<'_>,
    ) -> Result<Vec<ExternalTool>, ConfigError> {
        let read = |tool: External| {
            names.external(&tool.name)?;
            self.parameters(&tool.parameters)?;
            if let Some(result) = &tool.result {
                self.schema(result, result.get_ref())?;
            }
            Ok(ExternalTool {
                name: tool.name.into_inner(),
                description: tool.description,
                parameters: tool.parameters.into_inner(),
                result: tool.result.map(Spanned::into_inner),
            })
        };
        tools.into_iter().map(read).collect()
    }

    fn strategy(&self, place: &Spanned<toml::Value>) -> Result<StrategyConfig, ConfigError> {
        let strategy: StrategyConfig = self.tagged(place, "kind")?;
        if let StrategyConfig::Plan {
            plan_schema: Some(schema),
            ..
        } = &strategy
        {
            self.schema(place, schema)?;
        }
        Ok(strategy)
    }

    fn middleware(
        &self,
        place: &Spanned<toml::Value>,
        config: &Config,
    ) -> Result<MiddlewareConfig, ConfigError> {
        let layer: MiddlewareConfig = self.tagged(place, "kind")?;
        if let MiddlewareConfig::Summarise { model, .. } = &layer {
            let model = Spanned::new(place.span(), model.clone());
            self.known("model", &model, config.models.keys())?;
        }
        Ok(layer)
    }

    fn compaction(
        &self,
        compaction: Spanned<Compaction>,
        of_agent: Option<&str>,
        config: &Config,
    ) -> Result<CompactionConfig, ConfigError> {
        if let Some(model) = &compaction.get_ref().model {
            self.known("model", model, config.models.keys())?;
        } else if of_agent.is_none() {
            let message = "an agent with workers has no model for summaries, expected model";
            return Err(self.wrong(&compaction, message));
        }
        let compaction = compaction.into_inner();
        let model = compaction.model.map(Spanned::into_inner);
        Ok(CompactionConfig {
            at_tokens: compaction.at_tokens.get(),
            keep_runs: compaction.keep_runs.unwrap_or(CompactionConfig::KEEP_RUNS),
            model: model.or(of_agent.map(str::to_owned)).unwrap_or_default(),
            prompt: compaction.prompt,
            params: compaction.params,
        })
    }

    fn handoffs(
        &self,
        name: &str,
        handoffs: &[Spanned<String>],
        agents: &BTreeSet<String>,
    ) -> Result<Vec<String>, ConfigError> {
        let mut found: Vec<String> = Vec::new();
        for handoff in handoffs {
            self.known("agent", handoff, agents)?;
            if handoff.get_ref() == name {
                return Err(self.wrong(handoff, "an agent can't hand over to itself"));
            }
            if found.contains(handoff.get_ref()) {
                let message = format!("{:?} is in the list twice", handoff.get_ref());
                return Err(self.wrong(handoff, message));
            }
            found.push(handoff.get_ref().clone());
        }
        Ok(found)
    }

    /// Refuses parameters that are not a JSON Schema of an object.
    pub(super) fn parameters(&self, schema: &Spanned<Value>) -> Result<(), ConfigError> {
        if schema.get_ref().get("type") != Some(&Value::from("object")) {
            let message = "parameters are a JSON Schema of an object, expected type = \"object\"";
            return Err(self.wrong(schema, message));
        }
        self.schema(schema, schema.get_ref())
    }

    /// Refuses a value that is not a JSON Schema. References to other documents are not followed.
    fn schema<T>(&self, place: &Spanned<T>, schema: &Value) -> Result<(), ConfigError> {
        let wrong =
            |what: String| self.wrong(place, format!("this is no usable JSON Schema: {what}"));
        upp::schema::check(schema).map_err(|refused| wrong(refused.to_string()))?;
        match jsonschema::options().offline().build(schema) {
            Ok(_) => Ok(()),
            Err(error) => Err(wrong(error.to_string())),
        }
    }
}
