//! The intermediate form of all formats: each run of an archive as model messages.
//!
//! ThreadProtocol has its vocabulary from Pydantic AI, so every format is read into and written
//! from that: `ModelMessage` objects (`kind: request | response`, `parts`, …). ThreadProtocol's
//! system messages (`message_type: "system"`) are at their positions between them. A new format
//! therefore needs two converters, not two for every other format.

use crate::archive::{Archive, ArchivedRun, Format};
use crate::{Converted, Losses};
use crate::{ai_sdk, canonical, pydantic_ai};
use thread::Json;

/// One run as model messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelRun {
    /// The id of the agent that ran, if one did.
    pub agent_id: Option<String>,
    /// The messages, in order.
    pub messages: Vec<ModelMessage>,
    /// The reason why the run ended early, if it did.
    pub interruption: Option<RunInterruption>,
}

/// A model message or a system message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelMessage {
    /// The message.
    pub json: Json,
    /// Its position in the archive: a JSON Pointer.
    pub pointer: String,
}

/// The reason why a run ended early (0.0.4 `InterruptionReason`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunInterruption {
    /// `user_cancelled`, `timeout`, `network_failure`, `safety_halt`, `error` or another.
    pub reason: String,
    /// The time, in RFC 3339, if known.
    pub at: Option<String>,
}

/// Every run of an archive as model messages; a run of turns becomes one for each agent's turn.
pub fn model_runs(archive: &Archive) -> Converted<Vec<ModelRun>> {
    let mut runs = Vec::with_capacity(archive.runs.len());
    let mut losses = Losses::default();
    for (place, run) in archive.runs.iter().enumerate() {
        let read = model_runs_of(run, &format!("/runs/{place}"));
        runs.extend(read.value);
        losses.extend(read.losses);
    }
    losses.with(runs)
}

/// Reads one run of an archive, which is at `pointer` there.
pub(crate) fn model_runs_of(run: &ArchivedRun, pointer: &str) -> Converted<Vec<ModelRun>> {
    match run.format {
        Format::PydanticAi => pydantic_ai::model_runs(run, pointer),
        Format::AiSdkUi | Format::AiSdkStream => ai_sdk::model_runs(run, pointer),
        Format::Thread => canonical::model_runs(run, pointer),
    }
}
