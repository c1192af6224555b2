//! `run`: one prompt on a durable thread, streamed.

mod nested;

use crate::args::RunOptions;
use crate::client::Client;
use crate::error::CliError;
use crate::input::Input;
use crate::output::{BOLD, DIM, Output, TOOL, clean};
use crate::signal::{Signal, stopped};
use crate::store::{Reach, StoreLocation, checked};
use futures_util::StreamExt;
use interop::parts::{ToolPart, ToolState};
use interop::run::{RunEvent, RunFold, RunPart, RunSelector, Selected};
use runtime::{
    Ids, Logged, ReactRequest, Run, RuntimeError, SubagentEvent, SystemIds, TenantId, Until,
    Watched,
};
use serde_json::json;
use server::{App, OpenMode};
use std::ops::ControlFlow;
use thread::Limits;
use timeline::{BlockKind, Chunk, ItemId, NewItem, OpenCall, OpenKind, Payload};

pub(crate) async fn run(
    place: &StoreLocation,
    mut options: RunOptions,
    output: &Output,
) -> Result<(), CliError> {
    checked(options.thread.as_deref())?;
    options.prompt = prompt(options.prompt)?;
    let key = options.thread.take().unwrap_or_else(|| SystemIds.mint());
    let (ended, failure) = match place.reach(&options.whose, OpenMode::ReadWrite).await? {
        Reach::Store(app, tenant) => run_here(&app, tenant, &key, options, output).await?,
        Reach::Server(client) => run_there(&client, &key, &options, output).await?,
    };
    if let Ended::Stopped(signal) = ended {
        return Err(CliError::Interrupted { key, signal });
    }
    output.print(&format!(
        "{DIM}thread {key} · continue with: loomline run --thread {key} …{DIM:#}"
    ));
    match failure {
        Some(reason) => Err(CliError::RunFailed { reason }),
        None => Ok(()),
    }
}

/// The prompt: the text itself, or standard input for `-`.
fn prompt(text: String) -> Result<String, CliError> {
    if text != "-" {
        return Ok(text);
    }
    let text = Input::open(None)?.text(Limits::default().max_bytes)?;
    let text = text.trim_end_matches(['\r', '\n']);
    if text.trim().is_empty() {
        return Err(CliError::Usage {
            what: "standard input is empty, and - reads the prompt from there".to_owned(),
        });
    }
    Ok(text.to_owned())
}

/// How the watching of a run ended.
enum Ended {
    /// The run is over.
    Over,
    /// A signal ended the program.
    Stopped(Signal),
}

/// Runs in this process.
async fn run_here(
    app: &App,
    tenant: TenantId,
    key: &str,
    options: RunOptions,
    output: &Output,
) -> Result<(Ended, Option<String>), CliError> {
    app.recover().await?;
    let runtime = app.runtime(&tenant).clone();
    let content = Payload::from(json!([{"type": "input_text", "text": options.prompt}]));
    let request = ReactRequest {
        run: Run {
            agent: options.agent,
            max_steps: options.max_steps,
            ..Run::default()
        },
        ..ReactRequest::new(tenant, key, NewItem::user(runtime.mint(), content))
    };
    let tenant = request.tenant.clone();
    let accepted = runtime.react(request).await.map_err(unknown)?;
    let mut screen = Screen::new(output, accepted.item_id, accepted.queued);
    let mut watch = runtime
        .watch(&tenant, key, accepted.after, Until::Rest)
        .await?;
    let follow = async {
        while let Some(watched) = watch.next().await {
            if screen
                .watched(watched.map_err(RuntimeError::from)?)?
                .is_break()
            {
                break;
            }
        }
        Ok::<_, CliError>(Ended::Over)
    };
    let ended = tokio::select! {
        signal = stopped() => Ended::Stopped(signal),
        ended = follow => ended?,
    };
    screen.end()?;
    // Who asks again does not wait.
    tokio::select! {
        closed = app.shutdown() => closed?,
        _ = stopped() => {}
    }
    screen.report_open(key);
    Ok((ended, screen.failure))
}

/// Runs on a server, which continues even if this program ends.
async fn run_there(
    client: &Client,
    key: &str,
    options: &RunOptions,
    output: &Output,
) -> Result<(Ended, Option<String>), CliError> {
    let message = (
        options.prompt.as_str(),
        options.agent.as_deref(),
        options.max_steps,
    );
    let accepted = client.post_message(key, message).await?;
    let mut screen = Screen::new(output, accepted.item_id, accepted.queued);
    let mut frames = client.events(key, accepted.after, true).await?;
    let follow = async {
        while let Some(watched) = frames.next(key).await? {
            if screen.watched(watched)?.is_break() {
                return Ok(Ended::Over);
            }
        }
        // The stream ends where the thread rests, and where the server stops.
        if client.is_running(key).await? {
            return Err(CliError::StreamEnded {
                key: key.to_owned(),
            });
        }
        Ok(Ended::Over)
    };
    let ended = tokio::select! {
        signal = stopped() => Ended::Stopped(signal),
        ended = follow => ended?,
    };
    screen.end()?;
    screen.report_open(key);
    Ok((ended, screen.failure))
}

/// Converts an error; an unknown agent gets a hint at the list of agents.
fn unknown(error: RuntimeError) -> CliError {
    if let RuntimeError::UnknownAgent(agent) = error {
        return CliError::UnknownAgent { agent };
    }
    error.into()
}

/// Shows the run that answers an item, while it happens.
struct Screen<'a> {
    output: &'a Output,
    fold: RunFold,
    failure: Option<String>,
    /// The calls that the last step left open.
    open: Vec<OpenCall>,
    /// Whether the cursor is in the middle of a line.
    column: bool,
}

impl<'a> Screen<'a> {
    /// For the run that answers an item.
    fn new(output: &'a Output, item: ItemId, is_queued: bool) -> Self {
        if is_queued {
            output.print(&format!("{DIM}an unfinished run continues first{DIM:#}"));
        }
        Self {
            output,
            fold: RunFold::new(RunSelector::answering(item)),
            failure: None,
            open: Vec::new(),
            column: false,
        }
    }

    /// Shows one event of the run or of a sub-agent; breaks after the run's last.
    fn watched(&mut self, watched: Watched) -> Result<ControlFlow<()>, CliError> {
        match watched {
            Watched::Record(logged) => self.show(&logged),
            Watched::Subagent(event) => {
                self.inside(&event)?;
                Ok(ControlFlow::Continue(()))
            }
        }
    }

    /// Shows a record; breaks after the run's last.
    fn show(&mut self, logged: &Logged) -> Result<ControlFlow<()>, CliError> {
        if self.output.is_json() {
            self.output.json(&crate::tail::event_json(logged))?;
        }
        let (selected, events) = self.fold.select(&logged.record);
        for event in events {
            self.event(event)?;
        }
        Ok(match selected {
            Selected::Last => ControlFlow::Break(()),
            Selected::Other | Selected::Own | Selected::Never => ControlFlow::Continue(()),
        })
    }

    fn event(&mut self, event: RunEvent<'_>) -> Result<(), CliError> {
        match event {
            RunEvent::Chunk(chunk) if self.is_seen() => self.chunk(chunk),
            RunEvent::Part {
                part: RunPart::Tool(tool),
                is_new: false,
                ..
            } if self.is_seen() => self.result(&tool),
            RunEvent::StepReset { .. } if self.is_seen() => {
                self.end()?;
                self.output.line(&format!(
                    "{DIM}(the answer was interrupted; it starts again){DIM:#}"
                ))
            }
            RunEvent::StepEnded { outcome, .. } => {
                self.open = OpenCall::list(outcome.open_calls.as_ref());
                Ok(())
            }
            RunEvent::ExecutionEnded {
                interruption: Some(why),
                ..
            } => {
                self.failure = Some(why.detail.clone().unwrap_or_else(|| why.reason.clone()));
                Ok(())
            }
            RunEvent::Chunk(_)
            | RunEvent::Part { .. }
            | RunEvent::StepReset { .. }
            | RunEvent::ExecutionEnded { .. }
            | RunEvent::Started { .. }
            | RunEvent::Continued { .. }
            | RunEvent::StepStarted { .. }
            | RunEvent::Responded { .. }
            | RunEvent::ContinuationPending
            | RunEvent::Ended
            | RunEvent::Abandoned
            | RunEvent::ItemAdded(_)
            | RunEvent::ThreadChanged(_) => Ok(()),
        }
    }

    /// Shows what happens inside a sub-agent.
    fn inside(&mut self, event: &SubagentEvent) -> Result<(), CliError> {
        match nested::line(event) {
            Some(line) if self.is_seen() => {
                self.end()?;
                self.output.line(&format!("{DIM}{line}{DIM:#}"))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Whether the run has started, and the output is for people.
    fn is_seen(&self) -> bool {
        self.fold.selector().execution().is_some() && !self.output.is_json()
    }

    fn chunk(&mut self, chunk: Chunk<'_>) -> Result<(), CliError> {
        match chunk {
            Chunk::BlockDelta { kind, text, .. } => match kind {
                BlockKind::Text => self.put(&clean(&text)),
                BlockKind::Reasoning => self.put(&format!("{DIM}{}{DIM:#}", clean(&text))),
            },
            Chunk::BlockStart { .. } | Chunk::BlockEnd { .. } => self.end(),
            Chunk::ToolInputStart { tool_name, .. } => {
                self.end()?;
                self.put(&format!("{TOOL}→ {}{TOOL:#} ", clean(&tool_name)))
            }
            Chunk::ToolInputDelta { text, .. } => self.put(&clean(&text)),
            Chunk::Source { .. }
            | Chunk::Marker(_)
            | Chunk::Runtime { .. }
            | Chunk::Data { .. }
            | Chunk::Other { .. } => Ok(()),
        }
    }

    fn result(&mut self, tool: &ToolPart) -> Result<(), CliError> {
        self.end()?;
        let name = clean(tool.tool_name());
        let shown = match (&tool.error_text, &tool.output) {
            (Some(error), _) => format!("failed: {error}"),
            // A result that is null is read as none.
            (None, None) if tool.state == ToolState::OutputAvailable => "null".to_owned(),
            (None, Some(output)) => output.read().unwrap_or_else(|_| output.value().to_string()),
            (None, None) => return Ok(()),
        };
        self.output
            .line(&format!("{TOOL}← {name}{TOOL:#} {}", shortened(&shown)))
    }

    /// Prints the calls that wait for a person or a client.
    fn report_open(&self, key: &str) {
        let mut n_calls = 0;
        for call in &self.open {
            let wait = match call.kind {
                OpenKind::Approval => "waits for an approval",
                OpenKind::External => "waits for a result from a client",
                OpenKind::Others | OpenKind::Child => continue,
            };
            let tool = ToolPart::read(&call.part);
            let name = tool.map_or_else(|| "a call".to_owned(), |tool| clean(tool.tool_name()));
            let id = clean(&call.tool_call_id);
            self.output
                .print(&format!("{BOLD}{name}{BOLD:#} {wait}: call {id}"));
            n_calls += 1;
        }
        if n_calls > 0 {
            self.output.print(&format!(
                "{DIM}Answer on the page of the thread (`loomline open {key}`), or at POST /api/v1/threads/{key}/answers.{DIM:#}",
                key = clean(key)
            ));
        }
    }

    fn put(&mut self, text: &str) -> Result<(), CliError> {
        self.column = !text.ends_with('\n');
        self.output.raw(text)
    }

    fn end(&mut self) -> Result<(), CliError> {
        if std::mem::take(&mut self.column) {
            self.output.line("")
        } else {
            Ok(())
        }
    }
}

fn shortened(text: &str) -> String {
    let one_line = clean(text).replace(['\n', '\t'], " ");
    match one_line.char_indices().nth(200) {
        Some((at, _)) => format!(
            "{}… ({} characters)",
            &one_line[..at],
            one_line.chars().count()
        ),
        None => one_line,
    }
}
