//! `run`: one prompt on a durable thread, streamed.

use crate::args::RunOptions;
use crate::error::CliError;
use crate::output::{DIM, Output, TOOL, clean};
use crate::store::Place;
use futures_util::StreamExt;
use runtime::{Logged, Policy, React, Run, Until};
use serde_json::{Value, json};
use server::{DEV_TENANT, OpenMode};
use timeline::{Event, ExecutionId, NewItem, Payload};

pub(crate) async fn run(
    place: &Place,
    options: RunOptions,
    output: &Output,
) -> Result<(), CliError> {
    let app = place.open(OpenMode::ReadWrite)?;
    app.recover().await?;
    let runtime = app.runtime();
    let tenant = DEV_TENANT.into();
    let key = options.thread.unwrap_or_else(|| runtime.mint());
    let content = Payload::from(json!([{"type": "input_text", "text": options.prompt}]));
    let request = React {
        tenant,
        key: key.clone(),
        item: NewItem::user(runtime.mint(), content),
        run: Run {
            agent: options.agent,
            max_steps: options.max_steps,
            ..Run::default()
        },
        policy: Policy::Queue,
        token: None,
    };
    let tenant = request.tenant.clone();
    let accepted = runtime.react(request).await?;
    let mut screen = Screen {
        output,
        execution: accepted.execution_id.clone(),
        column: false,
    };
    let mut follow = runtime
        .follow(&tenant, &key, accepted.after, Until::Rest)
        .await?;
    let mut failure = None;
    while let Some(logged) = follow.next().await {
        let logged = logged.map_err(runtime::RuntimeError::from)?;
        if let Event::ExecutionStatusChanged {
            execution_id,
            interruption: Some(why),
            ..
        } = &logged.record.event
            && Some(execution_id) == accepted.execution_id.as_ref()
        {
            failure = Some(why.detail.clone().unwrap_or_else(|| why.reason.clone()));
        }
        screen.show(&logged)?;
        if is_end(&logged.record.event, accepted.execution_id.as_ref()) {
            break;
        }
    }
    drop(follow);
    screen.end()?;
    output.say(&format!(
        "{DIM}thread {key} · go on with --thread {key}{DIM:#}"
    ));
    app.shutdown().await?;
    match failure {
        Some(reason) => Err(CliError::RunFailed { reason }),
        None => Ok(()),
    }
}

fn is_end(event: &Event, execution: Option<&ExecutionId>) -> bool {
    matches!(event, Event::ThreadFinished { execution_id, .. } if Some(execution_id) == execution)
}

/// Shows a run as it comes.
struct Screen<'a> {
    output: &'a Output,
    execution: Option<ExecutionId>,
    /// Whether the cursor stands in the middle of a line.
    column: bool,
}

impl Screen<'_> {
    fn show(&mut self, logged: &Logged) -> Result<(), CliError> {
        if self.output.is_json() {
            return self
                .output
                .json(&crate::threads::event_json(logged));
        }
        match &logged.record.event {
            Event::ChunkEmitted {
                chunk_type,
                data: Some(data),
                execution_id,
                ..
            } if *execution_id == self.execution => self.chunk(chunk_type, &data.value()),
            Event::PartUpdated { part, .. } => self.result(&part.value()),
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
            | Event::ChunkEmitted { .. }
            | Event::ThreadFinished { .. } => Ok(()),
        }
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
