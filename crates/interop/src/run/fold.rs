//! From the records of a log to the events of one run.

use super::blocks::Blocks;
use super::event::{RunEvent, RunPart, stored_text};
use super::select::{RunSelector, Selected};
use timeline::{
    BlockId, BlockKind, Chunk, Event, Execution, ExecutionId, ExecutionStatus, ItemId, Marker,
    Payload, Record, Step, StepId, StepStatus,
};

/// Folds the log of a thread, record by record, into the events of one run.
///
/// The cost is proportional to the records. [`replay`](super::replay) returns the same events from
/// a transcript.
#[derive(Clone, Debug)]
pub struct RunFold {
    selector: RunSelector,
    has_started: bool,
    first_answers: bool,
    step: Option<StepId>,
    steps: StepFold,
}

/// The state of the running step in the fold.
#[derive(Clone, Debug, Default)]
pub(super) struct StepFold {
    iteration: u32,
    /// Whether the execution acts on answers, and the step is its first.
    is_known: bool,
    blocks: Option<Blocks>,
}

impl RunFold {
    /// The events of the run that the selector picks.
    pub fn new(selector: RunSelector) -> Self {
        Self {
            selector,
            has_started: false,
            first_answers: false,
            step: None,
            steps: StepFold::default(),
        }
    }

    /// The fold of a run that has started: `execution` is its last one, `step` the last step.
    pub(super) fn resumed(
        execution: Option<ExecutionId>,
        step: Option<StepId>,
        steps: StepFold,
    ) -> Self {
        Self {
            has_started: execution.is_some(),
            step,
            steps,
            ..Self::new(RunSelector::running(execution))
        }
    }

    /// Makes the fold store the text of the running step and emit each block once, whether it was
    /// streamed or stored ([`RunEvent::Chunk`]).
    #[must_use]
    pub fn with_blocks(mut self) -> Self {
        self.steps.blocks = Some(Blocks::default());
        self
    }

    /// The executions that answer these items continue the run, in order.
    #[must_use]
    pub fn then_answering(self, items: impl IntoIterator<Item = ItemId>) -> Self {
        Self {
            selector: self.selector.then_answering(items),
            ..self
        }
    }

    /// The next execution continues the run, which had ended with pending calls.
    pub fn await_next(&mut self) {
        self.selector.await_next();
    }

    /// The run's first execution acts on answers to calls that clients know.
    pub fn set_first_answers(&mut self) {
        self.first_answers = true;
    }

    /// Picks the run's events.
    pub fn selector(&self) -> &RunSelector {
        &self.selector
    }

    /// The step at work, or the last one.
    pub fn step(&self) -> Option<&StepId> {
        self.step.as_ref()
    }

    /// The events that a record is.
    pub fn events<'r>(&mut self, record: &'r Record) -> Vec<RunEvent<'r>> {
        self.select(record).1
    }

    /// The relation of a record to the run, and the run events that it causes.
    pub fn select<'r>(&mut self, record: &'r Record) -> (Selected, Vec<RunEvent<'r>>) {
        let was_running = self.selector.is_running();
        let selected = self.selector.select(&record.event);
        let mut out = Vec::new();
        // What happens in the thread is shown to its reader beyond the end of the run, too.
        if was_running || self.selector.is_running() || self.selector.is_over() {
            self.fold(&record.event, &mut out);
        }
        let has_stopped = was_running && !self.selector.is_running();
        match selected {
            Selected::Own if self.has_started && has_stopped => {
                out.push(RunEvent::ContinuationPending);
            }
            Selected::Last if self.has_started => out.push(RunEvent::Ended),
            Selected::Never => out.push(RunEvent::Abandoned),
            Selected::Other | Selected::Own | Selected::Last => {}
        }
        (selected, out)
    }

    fn fold<'r>(&mut self, event: &'r Event, out: &mut Vec<RunEvent<'r>>) {
        if let Event::ExecutionCreated { execution } = event
            && self.selector.runs(&execution.id)
        {
            self.execution_started(execution, out);
        }
        // A reader that was not there when the run began has nothing to attach the rest to.
        if !self.has_started {
            return;
        }
        match event {
            Event::StepCreated { step } if self.selector.runs(&step.execution_id) => {
                self.step = Some(step.id.clone());
                self.steps.start(step, out);
            }
            Event::StepStatusChanged {
                step_id,
                to,
                outcome,
                ..
            } if self.is_step(step_id) => self.steps.end(step_id, *to, outcome, out),
            Event::PartCreated {
                step_id, idx, part, ..
            } if self.is_step(step_id) => self.steps.part(*idx, part, true, out),
            Event::PartUpdated {
                step_id, idx, part, ..
            } if self.is_step(step_id) => self.steps.part(*idx, part, false, out),
            Event::ChunkEmitted {
                chunk_type,
                execution_id,
                data,
                ..
            } => {
                let chunk = Chunk::decode(chunk_type, data.as_ref());
                match execution_id {
                    Some(id) if self.selector.runs(id) => self.steps.chunk(chunk, out),
                    Some(_) => {}
                    None => out.push(RunEvent::ThreadChanged(chunk)),
                }
            }
            Event::ExecutionStatusChanged {
                execution_id,
                to,
                interruption,
                ..
            } if self.selector.runs(execution_id) => {
                if *to == ExecutionStatus::Completed {
                    self.steps.close_blocks(out);
                }
                out.push(RunEvent::ExecutionEnded {
                    execution_id,
                    status: *to,
                    interruption: interruption.as_ref(),
                    is_last: !self.selector.will_continue(),
                });
            }
            Event::ItemCreated { item } => out.push(RunEvent::ItemAdded(item)),
            Event::ExecutionCreated { .. }
            | Event::StepCreated { .. }
            | Event::StepStatusChanged { .. }
            | Event::PartCreated { .. }
            | Event::PartUpdated { .. }
            | Event::ExecutionStatusChanged { .. }
            | Event::ThreadFinished { .. }
            | Event::ContextCreated { .. }
            | Event::ContextResolved { .. }
            | Event::ContextStatusChanged { .. }
            | Event::ThreadCreated { .. }
            | Event::ThreadResolved { .. }
            | Event::ThreadStatusChanged { .. }
            | Event::ItemStatusChanged { .. } => {}
        }
    }

    fn execution_started<'r>(&mut self, execution: &'r Execution, out: &mut Vec<RunEvent<'r>>) {
        let is_first = !std::mem::replace(&mut self.has_started, true);
        let answers = if is_first {
            self.first_answers
        } else {
            self.selector.answers()
        };
        self.steps.is_known = answers;
        out.push(if is_first {
            RunEvent::Started { execution }
        } else {
            RunEvent::Continued { execution, answers }
        });
    }

    fn is_step(&self, step: &StepId) -> bool {
        self.step.as_ref() == Some(step)
    }
}

impl StepFold {
    pub(super) fn with_blocks(self) -> Self {
        Self {
            blocks: Some(Blocks::default()),
            ..self
        }
    }

    /// Starts an execution; `answers` states whether it acts on answers to calls.
    pub(super) fn execution(&mut self, answers: bool) {
        self.is_known = answers;
    }

    /// The blocks that are open, which end with this.
    fn end_blocks(&mut self) -> Vec<(BlockKind, BlockId<'static>)> {
        let open = self.blocks.as_mut().map(Blocks::end_all);
        open.unwrap_or_default()
    }

    fn close_blocks(&mut self, out: &mut Vec<RunEvent<'_>>) {
        let open = self.end_blocks().into_iter();
        out.extend(open.map(|(kind, block)| block_end(kind, block)));
    }

    fn reset_blocks(&mut self) {
        if let Some(blocks) = &mut self.blocks {
            *blocks = Blocks::default();
        }
    }

    pub(super) fn start<'r>(&mut self, step: &'r Step, out: &mut Vec<RunEvent<'r>>) {
        self.iteration = step.iteration;
        // Only the first step of an execution is about answers.
        self.is_known &= step.iteration == 0;
        self.reset_blocks();
        out.push(RunEvent::StepStarted { step });
    }

    pub(super) fn end<'r>(
        &mut self,
        step_id: &'r StepId,
        status: StepStatus,
        outcome: &'r timeline::StepOutcome,
        out: &mut Vec<RunEvent<'r>>,
    ) {
        if status == StepStatus::Completed {
            self.close_blocks(out);
        }
        out.push(RunEvent::StepEnded {
            step_id,
            status,
            outcome,
        });
    }

    pub(super) fn chunk<'r>(&mut self, chunk: Chunk<'r>, out: &mut Vec<RunEvent<'r>>) {
        match chunk {
            Chunk::Marker(marker) => self.marker(marker, out),
            Chunk::Other { .. } => {}
            Chunk::Source { .. } | Chunk::Runtime { .. } | Chunk::Data { .. } => {
                out.push(RunEvent::Chunk(chunk));
            }
            Chunk::BlockStart { .. }
            | Chunk::BlockDelta { .. }
            | Chunk::BlockEnd { .. }
            | Chunk::ToolInputStart { .. }
            | Chunk::ToolInputDelta { .. } => {
                if self.opens(&chunk, out) {
                    out.push(RunEvent::Chunk(chunk));
                }
            }
        }
    }

    pub(super) fn marker<'r>(&mut self, marker: Marker<'r>, out: &mut Vec<RunEvent<'r>>) {
        match marker {
            Marker::StepResponse(data) => out.push(RunEvent::Responded {
                response: data.and_then(|data| data.read().ok()),
            }),
            Marker::StepReset => {
                let open = self.end_blocks();
                out.push(RunEvent::StepReset { open });
                self.reset_blocks();
            }
            Marker::ToolStarted(_) => out.push(RunEvent::Chunk(Chunk::Marker(marker))),
            Marker::StepNoted(_)
            | Marker::ExecutionResumed
            | Marker::ExecutionParked
            | Marker::ThreadUpdated(_)
            | Marker::ItemRemoved(_)
            | Marker::ThreadCompacted(_) => {}
        }
    }

    /// Whether a chunk of a block or call is shown. Readers need the start of a block before its
    /// deltas, so a missing start is emitted here.
    fn opens<'r>(&mut self, chunk: &Chunk<'r>, out: &mut Vec<RunEvent<'r>>) -> bool {
        let Some(blocks) = &mut self.blocks else {
            return true;
        };
        match chunk {
            Chunk::BlockStart { kind, block, .. } => blocks.start(*kind, block),
            Chunk::BlockDelta {
                kind, block, text, ..
            } => {
                if blocks.grow(*kind, block, text) {
                    out.push(block_start(*kind, block.clone()));
                }
                true
            }
            Chunk::BlockEnd { kind, block, .. } => blocks.end(*kind, block),
            Chunk::ToolInputStart { tool_call_id, .. } => blocks.start_call(tool_call_id),
            Chunk::ToolInputDelta { tool_call_id, .. } => blocks.has_call(tool_call_id),
            Chunk::Source { .. }
            | Chunk::Marker(_)
            | Chunk::Runtime { .. }
            | Chunk::Data { .. }
            | Chunk::Other { .. } => true,
        }
    }

    pub(super) fn part<'r>(
        &mut self,
        idx: u32,
        payload: &'r Payload,
        is_new: bool,
        out: &mut Vec<RunEvent<'r>>,
    ) {
        let part = RunPart::read(payload);
        if is_new && part == RunPart::Content {
            self.stored(idx, payload, out);
        }
        out.push(RunEvent::Part {
            idx,
            part,
            payload,
            is_new,
            is_known: self.is_known,
        });
    }

    /// Emits the full text of a stored part that was not streamed. Skips empty texts.
    fn stored(&mut self, idx: u32, part: &Payload, out: &mut Vec<RunEvent<'_>>) {
        let Some(blocks) = &mut self.blocks else {
            return;
        };
        let Some((kind, text)) = stored_text(part) else {
            return;
        };
        if text.is_empty() {
            return;
        }
        if let Some((block, was_open)) = blocks.store(kind, &text) {
            if was_open {
                out.push(block_end(kind, block));
            }
            return;
        }
        let block = BlockId::new(kind, self.iteration, idx);
        out.push(block_start(kind, block.clone()));
        out.push(RunEvent::Chunk(Chunk::BlockDelta {
            kind,
            block: block.clone(),
            text: text.into(),
            extra: None,
        }));
        out.push(block_end(kind, block));
    }
}

fn block_start(kind: BlockKind, block: BlockId<'_>) -> RunEvent<'_> {
    let extra = None;
    RunEvent::Chunk(Chunk::BlockStart { kind, block, extra })
}

fn block_end(kind: BlockKind, block: BlockId<'_>) -> RunEvent<'_> {
    let extra = None;
    RunEvent::Chunk(Chunk::BlockEnd { kind, block, extra })
}
