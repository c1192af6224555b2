//! Tools, calls and results (UPP §10, UAP §8.5).

mod arguments;
mod context;
mod reconcile;

pub use arguments::{Arguments, ArgumentsError};
pub use context::ToolContext;
pub use reconcile::{Reconcile, Reconciled};

use crate::shared_json::SharedJson;
use futures_util::future::BoxFuture;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// Correlates a tool call with its result. Opaque, stored byte for byte.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ToolCallId(#[serde(deserialize_with = "crate::shared::text")] pub Arc<str>);

impl ToolCallId {
    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for ToolCallId {
    fn from(id: &str) -> Self {
        Self(id.into())
    }
}

impl std::fmt::Display for ToolCallId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// A model's request to run a tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    /// The provider's id of the call.
    pub tool_call_id: ToolCallId,
    /// The tool's name.
    #[serde(deserialize_with = "crate::shared::text")]
    pub tool_name: Arc<str>,
    /// The arguments as the provider sent them.
    pub arguments: Arguments,
    /// Calls of the same response that must end first (UAP §8.6).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<ToolCallId>,
}

/// The answer to a call, as the model sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolResult {
    /// The call this answers.
    pub tool_call_id: ToolCallId,
    /// The value; the model reads a string unchanged, anything else as JSON.
    pub result: SharedJson,
    /// Whether the tool failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
}

/// The record of one run of a tool (UPP §7).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolExecution {
    /// The tool's name.
    #[serde(deserialize_with = "crate::shared::text")]
    pub tool_name: Arc<str>,
    /// The call.
    pub tool_call_id: ToolCallId,
    /// The arguments the tool got.
    pub arguments: SharedJson,
    /// The result; the error's text if `is_error`.
    pub result: SharedJson,
    /// Whether it failed.
    pub is_error: bool,
    /// How long it ran, in milliseconds.
    pub duration: u64,
    /// Whether the approval handler or a person allowed the call; absent if no approval was needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved: Option<bool>,
}

/// Decides whether a call that a crash interrupted runs again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effect {
    /// Changes nothing: it runs again.
    Pure,
    /// Changes something once per idempotency key: it runs again with the same key.
    Idempotent,
    /// Changes something, and can report afterwards whether it did: that check comes first
    /// ([`Tool::with_reconcile`]).
    Reconcilable,
    /// Changes something each time: it never runs twice; the model gets an interrupted result.
    #[default]
    Effect,
}

impl Effect {
    /// Its name in configurations.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pure => "pure",
            Self::Idempotent => "idempotent",
            Self::Reconcilable => "reconcilable",
            Self::Effect => "effect",
        }
    }
}

/// The result of a tool's code.
pub type ToolOutput = Result<Value, ToolFailure>;

/// Why a tool failed; the text is shown to the model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ToolFailure {
    /// The error and a way around it, for the model.
    pub message: String,
}

impl ToolFailure {
    /// Makes a failure.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
        }
    }
}

/// The code of a tool. Dropping the future cancels it.
pub trait ToolRun: Send + Sync {
    /// Runs the tool once.
    fn run(&self, arguments: Value, context: ToolContext) -> BoxFuture<'static, ToolOutput>;
}

impl<F> ToolRun for F
where
    F: Fn(Value, ToolContext) -> BoxFuture<'static, ToolOutput> + Send + Sync,
{
    fn run(&self, arguments: Value, context: ToolContext) -> BoxFuture<'static, ToolOutput> {
        self(arguments, context)
    }
}

/// Decides, each time, whether a call with these arguments may run. A failure ends the generation.
pub type Approval =
    Arc<dyn Fn(&Value) -> BoxFuture<'static, Result<bool, ToolFailure>> + Send + Sync>;

/// A tool: what the model sees, and the code behind it.
#[derive(Clone)]
pub struct Tool {
    /// Unique among the tools of one agent.
    pub name: String,
    /// Shown to the model.
    pub description: String,
    /// A JSON Schema whose root is an object; the model receives it.
    pub parameters: Arc<Value>,
    /// Provider-namespaced extras.
    pub metadata: serde_json::Map<String, Value>,
    /// Decides whether a call with an unknown outcome runs again.
    pub effect: Effect,
    /// Must end before other tools of the response start (UAP §8.5).
    pub sequential: bool,
    /// Names of tools that must end first (UAP §8.5).
    pub depends_on: Vec<String>,
    /// An approval handler in this process, called before each run, if present. The run waits for it.
    pub approval: Option<Approval>,
    /// Whether a person or an application must allow each call, however long that takes. A run that
    /// comes to such a call ends; the answer may come days later and in another process.
    pub requires_approval: bool,
    /// Whether the client executes the calls and sends the results; there is no code here. A run that
    /// comes to such a call ends and waits.
    pub external: bool,
    /// A JSON Schema of the results that clients send for calls of an external tool; any value if absent.
    pub result: Option<Arc<Value>>,
    /// Reports after a crash whether a call took effect. Present if the effect is
    /// [`Effect::Reconcilable`].
    pub reconcile: Option<Arc<dyn Reconcile>>,
    /// The code.
    pub run: Arc<dyn ToolRun>,
}

impl Tool {
    /// Makes a tool that runs in parallel with others and never runs twice. Its code gets the context of
    /// the call (UAP §8.4); [`Tool::simple`] makes one without.
    pub fn new(
        name: impl Into<String>,
        description: impl Into<String>,
        parameters: Value,
        run: impl ToolRun + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            parameters: Arc::new(parameters),
            metadata: serde_json::Map::new(),
            effect: Effect::default(),
            sequential: false,
            depends_on: Vec::new(),
            approval: None,
            requires_approval: false,
            external: false,
            result: None,
            reconcile: None,
            run: Arc::new(run),
        }
    }

    /// Makes a tool whose code takes only the arguments, as in UPP §10.
    pub fn simple<F, R>(
        name: impl Into<String>,
        description: impl Into<String>,
        parameters: Value,
        run: F,
    ) -> Self
    where
        F: Fn(Value) -> R + Send + Sync + 'static,
        R: Future<Output = ToolOutput> + Send + 'static,
    {
        let run = move |arguments: Value, _: ToolContext| -> BoxFuture<'static, ToolOutput> {
            Box::pin(run(arguments))
        };
        Self::new(name, description, parameters, run)
    }

    /// Makes a tool whose code takes its arguments as a type of the caller's, and returns any
    /// serializable value.
    ///
    /// The caller supplies the schema; none is derived from the type. If the arguments match the schema
    /// but not the type, the model receives the error and the code does not run.
    ///
    /// ```
    /// use loomline_upp::{Tool, ToolFailure};
    /// use serde_json::json;
    ///
    /// #[derive(serde::Deserialize)]
    /// struct Numbers {
    ///     a: i64,
    ///     b: i64,
    /// }
    ///
    /// let integer = json!({"type": "integer"});
    /// let schema = json!({
    ///     "type": "object",
    ///     "properties": {"a": integer, "b": integer},
    ///     "required": ["a", "b"],
    /// });
    /// let add = Tool::typed("add", "Adds two numbers.", schema, |it: Numbers| async move {
    ///     let sum = it.a.checked_add(it.b);
    ///     sum.ok_or_else(|| ToolFailure::new("The sum is too large. Use smaller numbers."))
    /// });
    /// # assert_eq!(add.name, "add");
    /// ```
    pub fn typed<A, T, F, R>(
        name: impl Into<String>,
        description: impl Into<String>,
        parameters: Value,
        run: F,
    ) -> Self
    where
        A: DeserializeOwned + Send + 'static,
        T: Serialize + 'static,
        F: Fn(A) -> R + Send + Sync + 'static,
        R: Future<Output = Result<T, ToolFailure>> + Send + 'static,
    {
        let run = move |arguments: Value| {
            let running = serde_json::from_value(arguments).map(&run);
            async move {
                let running = running.map_err(|error| {
                    ToolFailure::new(format!("The arguments can't be taken: {error}"))
                })?;
                serde_json::to_value(running.await?).map_err(|error| {
                    ToolFailure::new(format!("The result can't be written: {error}"))
                })
            }
        };
        Self::simple(name, description, parameters, run)
    }

    /// Declares a tool that the client executes: a run that comes to a call of it waits for the result.
    pub fn external(
        name: impl Into<String>,
        description: impl Into<String>,
        parameters: Value,
    ) -> Self {
        let name = name.into();
        let text = format!("Tool '{name}' is executed elsewhere and has no code here");
        let run = move |_: Value| std::future::ready(Err(ToolFailure::new(text.as_str())));
        Self {
            external: true,
            ..Self::simple(name, description, parameters, run)
        }
    }

    /// Declares the JSON Schema of the results of an external tool.
    #[must_use]
    pub fn with_result(mut self, schema: Value) -> Self {
        self.result = Some(Arc::new(schema));
        self
    }

    /// Declares whether a call with an unknown outcome runs again. For [`Effect::Reconcilable`] use
    /// [`Tool::with_reconcile`]; an agent refuses a tool that declares it without a check.
    #[must_use]
    pub fn with_effect(mut self, effect: Effect) -> Self {
        self.effect = effect;
        self
    }

    /// Makes the tool [`Effect::Reconcilable`]: after a crash `reconcile` reports whether a call took
    /// effect.
    #[must_use]
    pub fn with_reconcile(mut self, reconcile: impl Reconcile + 'static) -> Self {
        self.effect = Effect::Reconcilable;
        self.reconcile = Some(Arc::new(reconcile));
        self
    }

    /// Runs no call before a person or an application has allowed it.
    #[must_use]
    pub fn with_requires_approval(mut self) -> Self {
        self.requires_approval = true;
        self
    }

    /// Makes each call end before other calls of the response start (UAP §8.5).
    #[must_use]
    pub fn with_sequential(mut self) -> Self {
        self.sequential = true;
        self
    }

    /// Starts calls only after those of these tools have ended (UAP §8.5).
    #[must_use]
    pub fn with_depends_on<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.depends_on = names.into_iter().map(Into::into).collect();
        self
    }

    /// Calls `approval` before each run.
    #[must_use]
    pub fn with_approval(
        mut self,
        approval: impl Fn(&Value) -> BoxFuture<'static, Result<bool, ToolFailure>>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        self.approval = Some(Arc::new(approval));
        self
    }
}

impl std::fmt::Debug for Tool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tool")
            .field("name", &self.name)
            .field("effect", &self.effect)
            .finish_non_exhaustive()
    }
}
