//! The Unified Agent Protocol (UAP-1.0): agents over any language model.
//!
//! Read [`Agent`], [`AgentState`] and [`ExecutionStrategy`] first. An agent has a model, tools and
//! a prompt. A strategy defines how it runs, as a step function over state. So the same code runs
//! in memory ([`Agent::generate`], [`Agent::stream`]) and durably. For the latter, a runtime calls
//! [`Agent::run_step`] and receives the data to store through a [`Journal`].
//!
//! The state is an argument and a result; the agent itself has none. The crate uses the types of
//! `upp` unchanged and exports none of them (UAP §1.3). It sets no limits, derives no tool schema
//! from an agent, and stores nothing unless a store for [`checkpoint`]s is configured.
//!
//! ```
//! use loomline_agents::{Agent, AgentOptions, AgentState};
//! use std::sync::Arc;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let agent = Agent::new(AgentOptions::new("echo", Arc::new(upp::Scripted::new())))?;
//! let first = agent.ask("Hello", AgentState::initial()).await?;
//! let second = agent.ask("Go on", first.state.clone()).await?;
//! assert_eq!(first.state.messages().len(), 2); // unchanged: one may branch from it
//! assert_eq!(second.state.messages().len(), 4);
//! # Ok(())
//! # }
//! ```

mod id;

mod agent;
mod answers;
mod boxed;
pub mod checkpoint;
mod depth;
mod error;
mod event;
mod hooks;
mod journal;
#[cfg(feature = "mcp")]
pub mod mcp;
pub mod middleware;
mod plan;
mod schema;
mod state;
mod strategy;
mod stream;
mod subagent;
pub mod telemetry;
mod tools;
mod trace;
mod tree;
mod writer;

/// The strategies by themselves (`agents/execution`, UAP §3.2).
pub mod execution {
    pub use crate::strategy::{
        ExecutionStrategy, Limit, Loop, Next, Plan, PlanError, PromptMark, React, StepContext,
        StepOutcome,
    };
}

pub use agent::{Agent, AgentBuilder, AgentOptions, GenerateResult};
pub use answers::{
    AnswerError, Answers, ExternalResult, PendingCall, PendingKind, Resumption, Verdict,
};
pub use depth::MAX_DEPTH;
pub use error::{AgentError, OptionsError};
pub use event::{AgentStreamEvent, EventData, UapEvent, UapEventType};
pub use hooks::{AgentStrategy, NoHooks};
pub use journal::{Journal, Stopped};
pub use middleware::{Middleware, MiddlewareContext};
pub use plan::{PlanStatus, PlanStep};
pub use schema::SchemaError;
pub use state::{AgentState, StateError, StateLimits};
pub use strategy::{
    ExecutionStrategy, Limit, Loop, Next, Plan, PlanError, PromptMark, React, StepContext,
    StepOutcome,
};
pub use stream::AgentStream;
pub use subagent::{
    Prompt, Spawn, SubAgent, SubAgentHost, SubAgentRun, SubAgentTool, SubagentEnd, SubagentEvent,
    SubagentForwarded, SubagentStart, Waits, run_in_memory, subagent_tool,
};
pub use trace::{SubagentExecutionTrace, ToolExecutionTrace};
pub use tree::{ThreadNode, ThreadTree, TreeError, TreeLimits};

/// Compiles and runs the programs of the guide.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/tutorials/rust-agent.md")]
struct Guide;
