//! `run`: one prompt on a durable thread, streamed.

mod nested;

use crate::args::RunOptions;
use crate::client::Client;
use crate::error::CliError;
use crate::input::Input;
use crate::output::{DIM, Output, TOOL, clean};
use crate::serve::{Signal, stopped};
use crate::store::{Place, Reach, checked};
use futures_util::StreamExt;
use runtime::{
    Ids, Logged, React, Run, RuntimeError, SubagentEvent, SystemIds, TenantId, Until, Watched,
};
use serde_json::{Value, json};
use server::{App, OpenMode};
use std::ops::ControlFlow;
use thread::Limits;
use timeline::{Event, ExecutionId, Item, ItemId, ItemType, NewItem, Payload};

pub(crate) async fn run(
    place: &Place,
    mut options: RunOptions,
    output: &Output,
) -> Result<(), CliError> {
    checked(options.thread.as_deref())?;
    options.prompt = prompt(options.prompt)?;
    let key = options.thread.take().unwrap_or_else(|| SystemIds.mint());
    let (ended, failure) = match place.reach(&options.whose, OpenMode::ReadWrite)? {
        Reach::Store(app, tenant) => run_here(&app, tenant, &key, options, output).await?,
        Reach::Server(client) => run_there(&client, &key, &options, output).await?,
    };
    if let Ended::Stopped(signal) = ended {
        return Err(CliError::Interrupted { key, signal });
    }
    output.say(&format!(
        "{DIM}thread {key} · go on with --thread {key}{DIM:#}"
    ));
    match failure {
        Some(reason) => Err(CliError::RunFailed { reason }),
        None => Ok(()),
    }
}

/// What to say: the text itself, or standard input.
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
    /// Someone wanted the program to end.
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
    let runtime = app.runtime();
    let content = Payload::from(json!([{"type": "input_text", "text": options.prompt}]));
    let request = React {
        run: Run {
            agent: options.agent,
            max_steps: options.max_steps,
            ..Run::default()
        },
        ..React::new(tenant, key, NewItem::user(runtime.mint(), content))
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
    Ok((ended, screen.failure))
}

/// Runs in a server, which goes on with it whatever becomes of this program.
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
    let accepted = client.say(key, message).await?;
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
    Ok((ended, screen.failure))
}

/// Says where the names are, of an agent that is none.
fn unknown(error: RuntimeError) -> CliError {
    if let RuntimeError::UnknownAgent(agent) = error {
        return CliError::UnknownAgent { agent };
    }
    error.into()
}

/// Shows the run that answers an item, as it comes.
struct Screen<'a> {
    output: &'a Output,
    /// What was said.
    origin: ItemId,
    /// What the run answers: the same, or a pointer to it.
    item: ItemId,
    /// The run, once it has begun: the item may have to wait.
    execution: Option<ExecutionId>,
    failure: Option<String>,
    /// Whether the cursor stands in the middle of a line.
    column: bool,
    /// Whether another agent goes on when the run is over.
    hands_over: bool,
}

impl<'a> Screen<'a> {
    /// For the run that answers an item.
    fn new(output: &'a Output, item: ItemId, is_queued: bool) -> Self {
        if is_queued {
            output.say(&format!("{DIM}an unfinished run goes on first{DIM:#}"));
        }
        Self {
            output,
            origin: item.clone(),
            item,
            execution: None,
            failure: None,
            column: false,
            hands_over: false,
        }
    }

    /// Shows one thing that happens, and says whether it is the run's last.
    fn watched(&mut self, watched: Watched) -> Result<ControlFlow<()>, CliError> {
        match watched {
            Watched::Record(logged) => self.show(&logged),
            Watched::Subagent(event) => {
                self.inside(&event)?;
                Ok(ControlFlow::Continue(()))
            }
        }
    }

    /// Shows an event, and says whether it is the run's last.
    fn show(&mut self, logged: &Logged) -> Result<ControlFlow<()>, CliError> {
        if self.output.is_json() {
            self.output.json(&crate::threads::event_json(logged))?;
        }
        match &logged.record.event {
            Event::ExecutionCreated { execution } if execution.trigger_item_id == self.item => {
                self.execution = Some(execution.id.clone());
            }
            Event::ChunkEmitted {
                chunk_type,
                data: Some(data),
                ..
            } if self.is_seen() => self.chunk(chunk_type, &data.value())?,
            Event::PartUpdated { part, .. } if self.is_seen() => self.result(&part.value())?,
            Event::PartCreated { part, .. } if self.execution.is_some() => {
                let kind = part.str_field("type");
                self.hands_over |= kind.as_deref() == Some("data-tp-agent_handoff");
            }
            Event::ItemCreated { item }
                if item.item_type == ItemType::ItemReference && self.is_meant(item) =>
            {
                self.item = item.id.clone();
            }
            Event::ExecutionStatusChanged {
                execution_id,
                interruption: Some(why),
                ..
            } if self.execution.as_ref() == Some(execution_id) => {
                self.failure = Some(why.detail.clone().unwrap_or_else(|| why.reason.clone()));
            }
            Event::ThreadFinished { execution_id, .. }
                if self.execution.as_ref() == Some(execution_id) =>
            {
                if !std::mem::take(&mut self.hands_over) {
                    return Ok(ControlFlow::Break(()));
                }
            }
            Event::ContextCreated { .. }
            | Event::ContextResolved { .. }
            | Event::ContextStatusChanged { .. }
            | Event::ThreadCreated { .. }
            | Event::ThreadResolved { .. }
            | Event::ThreadStatusChanged { .. }
            | Event::ExecutionCreated { .. }
            | Event::ExecutionStatusChanged { .. }
            | Event::ItemCreated { .. }
            | Event::ItemStatusChanged { .. }
            | Event::StepCreated { .. }
            | Event::StepStatusChanged { .. }
            | Event::PartCreated { .. }
            | Event::PartUpdated { .. }
            | Event::ChunkEmitted { .. }
            | Event::ThreadFinished { .. } => {}
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Whether an item points to what this run answers: another agent goes on with it.
    fn is_meant(&self, item: &Item) -> bool {
        let content = item.content.as_ref();
        let id = content.and_then(|content| content.str_field("itemId"));
        id.as_deref() == Some(self.origin.as_str())
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

    /// Whether the run has begun, and people watch.
    fn is_seen(&self) -> bool {
        self.execution.is_some() && !self.output.is_json()
    }

    fn chunk(&mut self, kind: &str, data: &Value) -> Result<(), CliError> {
        let text = |field: &str| clean(data.get(field).and_then(Value::as_str).unwrap_or_default());
        match kind {
            "text-delta" => self.put(&text("delta")),
            "reasoning-delta" => self.put(&format!("{DIM}{}{DIM:#}", text("delta"))),
            "text-start" | "text-end" | "reasoning-start" | "reasoning-end" => self.end(),
            "tool-input-start" => {
                self.end()?;
                self.put(&format!("{TOOL}→ {}{TOOL:#} ", text("toolName")))
            }
            "tool-input-delta" => self.put(&text("inputTextDelta")),
            "data-step-reset" => {
                self.end()?;
                self.output.line(&format!(
                    "{DIM}(the answer was interrupted; it begins again){DIM:#}"
                ))
            }
            _ => Ok(()),
        }
    }

    fn result(&mut self, part: &Value) -> Result<(), CliError> {
        self.end()?;
        let name = part.get("type").and_then(Value::as_str).unwrap_or_default();
        let name = clean(name.strip_prefix("tool-").unwrap_or(name));
        let shown = match (
            part.get("errorText").and_then(Value::as_str),
            part.get("output"),
        ) {
            (Some(error), _) => format!("failed: {error}"),
            (None, Some(Value::String(text))) => text.clone(),
            (None, Some(value)) => value.to_string(),
            (None, None) => return Ok(()),
        };
        self.output
            .line(&format!("{TOOL}← {name}{TOOL:#} {}", shortened(&shown)))
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
