//! Export and import of threads as documents.

use super::comparison::{Check, report};
use super::view::ThreadView;
use crate::aitp::MessagePost;
use crate::app::{Exported, ImportSource};
use crate::auth::Caller;
use crate::body::{JsonText, Query};
use crate::error::ExchangeError;
use crate::error::{ApiError, ErrorBody, render_error};
use crate::state::Api;
use crate::threads::{ThreadKey, check_new_key};
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use interop::Loss;
use interop::archive::Format;
use interop::convert::{AttributedFields, SourceForm};
use runtime::{RuntimeError, StoreError};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use thread::Limits;
use timeline::Seq;
use utoipa::{IntoParams, ToSchema};

/// Maximum number of losses in an export's headers.
const NAMED_LOSSES: usize = 16;

/// The formats for import and export.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Exchanged {
    #[default]
    #[serde(alias = "threadprotocol")]
    Thread,
    Archive,
    PydanticAi,
    AiSdkUi,
}

impl Exchanged {
    fn form(self) -> SourceForm {
        match self {
            Self::Thread => SourceForm::Of(Format::Thread),
            Self::Archive => SourceForm::Archive,
            Self::PydanticAi => SourceForm::Of(Format::PydanticAi),
            Self::AiSdkUi => SourceForm::Of(Format::AiSdkUi),
        }
    }
}

/// The format of an export.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ExportQuery {
    /// `thread`, `archive`, `pydantic-ai` or `ai-sdk-ui`; `thread` when absent.
    #[param(value_type = Option<String>)]
    #[serde(default)]
    format: Exchanged,
    /// The version of a ThreadProtocol document: `0.0.4` (the default), `0.0.3` or `2.0.0`. The
    /// response is then a report.
    version: Option<String>,
    /// `strict` checks a ThreadProtocol document with the rules for writers, `lenient` with those for
    /// readers. The response is then a report.
    #[param(value_type = Option<String>)]
    check: Option<Check>,
}

/// The format and the key of an import.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ImportQuery {
    /// `thread` (or `threadprotocol`), `archive`, `pydantic-ai` or `ai-sdk-ui`.
    #[param(value_type = String)]
    from: Exchanged,
    /// The key of the new thread. Default: a new one.
    key: Option<String>,
    /// The agent of the runs for which nothing else names one.
    agent: Option<String>,
    /// The agent of each run: a JSON list of objects with `agent`, `agent_id`, `run_id` and
    /// `n_messages`.
    attribution: Option<String>,
}

/// The source of a text in a format, with the agents that a query names.
fn source(
    form: SourceForm,
    agent: Option<&str>,
    attribution: Option<&str>,
) -> Result<ImportSource, ApiError> {
    let list = attribution.map(|text| {
        AttributedFields::list(text, &Limits::default()).map_err(|error| ApiError::InvalidQuery {
            what: format!("attribution: {}", render_error(&error)),
        })
    });
    let mut attribution = list.transpose()?.unwrap_or_default();
    attribution.extend(agent.map(|agent| AttributedFields {
        agent: agent.to_owned(),
        ..AttributedFields::default()
    }));
    Ok(ImportSource { form, attribution })
}

/// The formats of messages to append.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Messages {
    PydanticAi,
    AiSdkUi,
}

impl Messages {
    fn form(self) -> SourceForm {
        SourceForm::Of(match self {
            Self::PydanticAi => Format::PydanticAi,
            Self::AiSdkUi => Format::AiSdkUi,
        })
    }
}

/// The format and the agents of messages to append.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct AppendQuery {
    /// `pydantic-ai` or `ai-sdk-ui`.
    #[param(value_type = String)]
    from: Messages,
    /// The agent of the runs for which nothing else names one.
    agent: Option<String>,
    /// The agent of each run: a JSON list of objects with `agent`, `agent_id`, `run_id` and
    /// `n_messages`.
    attribution: Option<String>,
    /// Append only if this is the `seq` of the thread.
    seq: Option<u64>,
}

/// An imported thread.
#[derive(Serialize, ToSchema)]
pub(crate) struct ImportedView {
    /// The thread.
    thread: ThreadView,
    /// The data that could not be imported.
    losses: Vec<LossView>,
}

/// One conversion loss.
#[derive(Serialize, ToSchema)]
pub(crate) struct LossView {
    /// The JSON pointer of the place in the file.
    pointer: String,
    /// The thing that was lost.
    what: String,
}

impl From<Loss> for LossView {
    fn from(Loss { pointer, what }: Loss) -> Self {
        Self { pointer, what }
    }
}

impl From<ExchangeError> for ApiError {
    fn from(error: ExchangeError) -> Self {
        match error {
            ExchangeError::Runtime(error) => error.into(),
            ExchangeError::Decode(error) => Self::InvalidDocument {
                what: render_error(&error),
                pointer: Some(error.pointer),
            },
            ExchangeError::Read(error) => Self::InvalidDocument {
                pointer: error.pointer().map(str::to_owned),
                what: render_error(&error),
            },
            ExchangeError::Import(error) => Self::InvalidDocument {
                what: render_error(&error),
                pointer: None,
            },
            error @ ExchangeError::Broken(_) => Self::Export(error),
        }
    }
}

/// A conversation in the format of the query: a document, or a list of messages.
#[derive(ToSchema)]
#[serde(untagged)]
#[expect(
    dead_code,
    reason = "the schema of texts that are sent as converters write them"
)]
pub(crate) enum ExportedConversation {
    /// A ThreadProtocol document, or an archive.
    Document(Map<String, Value>),
    /// Messages of Pydantic AI or of the AI SDK.
    Messages(Vec<Map<String, Value>>),
}

/// A conversation in one of the supported formats: a document, or a list of messages.
#[derive(ToSchema)]
#[serde(untagged)]
#[schema(example = json!({
    "thread_protocol_version": "1.0.0", "id": "01a2037e-e7f3-72f2-8525-2858d04ba93c",
    "created_at": "2026-01-01T00:00:00Z", "turns": [],
}))]
#[expect(dead_code, reason = "the schema of texts that converters read")]
pub(crate) enum ImportedConversation {
    /// A ThreadProtocol document, or an archive.
    Document(Map<String, Value>),
    /// Messages of Pydantic AI or of the AI SDK.
    Messages(Vec<Map<String, Value>>),
}

/// Exports a thread, by default as a ThreadProtocol document (0.0.4) with the hash of its canonical
/// form.
///
/// As `archive`, `pydantic-ai` or `ai-sdk-ui` it consists of the imported bytes, unchanged, and the
/// newer messages. With `version` or `check`, the response is an object with `version`, `verdict`,
/// `violations`, `losses`, `hash`, `hashWarning` and `document`.
#[utoipa::path(get, path = "/threads/{key}/document", operation_id = "exportDocument", tag = "documents", security(("key" = [])), params(("key" = String, Path), ExportQuery),
    responses((status = 200, body = ExportedConversation, headers(
        ("loomline-content-hash" = String, description = "sha256: and the hash of the canonical form, of a ThreadProtocol document"),
        ("loomline-losses" = u64, description = "How many things the format has no place for"),
        ("loomline-loss" = String, description = "One of them: where it stood, and what it is; the first 16"),
        ("loomline-hash-warning" = String, description = "Why the hash is not exact, if it is not"))),
        (status = "default", body = ErrorBody)))]
pub(crate) async fn export(
    State(api): State<Api>,
    thread: ThreadKey,
    Query(query): Query<ExportQuery>,
) -> Result<Response, ApiError> {
    if query.version.is_some() || query.check.is_some() {
        if !matches!(query.format, Exchanged::Thread) {
            let what = "version and check are for the format thread".to_owned();
            return Err(ApiError::InvalidQuery { what });
        }
        let wanted = (query.version.as_deref(), query.check);
        return Ok(Json(report(&api, &thread, wanted).await?).into_response());
    }
    let exported = api
        .app()
        .export(thread.tenant(), thread.key(), query.format.form())
        .await?;
    let Exported {
        text,
        losses,
        hash,
        inexact,
    } = exported;
    let mut response = ([(header::CONTENT_TYPE, "application/json")], text).into_response();
    let headers = response.headers_mut();
    headers.insert("loomline-losses", losses.len().into());
    for loss in losses.iter().take(NAMED_LOSSES) {
        if let Some(value) = header_text(&format!("{} {}", loss.pointer, loss.what)) {
            headers.append("loomline-loss", value);
        }
    }
    if let Some(warning) = inexact.and_then(|it| header_text(&it.to_string())) {
        headers.insert("loomline-hash-warning", warning);
    }
    // A number that no double can stand for has no canonical form, so there is no hash.
    let hash = hash.and_then(Result::ok);
    if let Some(hash) = hash.and_then(|hash| HeaderValue::try_from(hash.to_string()).ok()) {
        headers.insert("loomline-content-hash", hash);
    }
    Ok(response)
}

/// A text as a header value; characters that headers can't carry become `?`.
fn header_text(text: &str) -> Option<HeaderValue> {
    let legal = |c: char| {
        if c == ' ' || c.is_ascii_graphic() {
            c
        } else {
            '?'
        }
    };
    HeaderValue::try_from(text.chars().map(legal).collect::<String>()).ok()
}

/// Imports a conversation as a new thread, and lists the conversion losses.
#[utoipa::path(post, path = "/import", operation_id = "importDocument", tag = "documents", security(("key" = [])), params(ImportQuery), request_body = ImportedConversation,
    responses((status = 201, body = ImportedView), (status = "default", body = ErrorBody)))]
pub(crate) async fn import(
    State(api): State<Api>,
    caller: Caller,
    Query(query): Query<ImportQuery>,
    JsonText(text): JsonText,
) -> Result<(StatusCode, Json<ImportedView>), ApiError> {
    check_new_key(&caller, query.key.as_deref(), "")?;
    let ImportQuery {
        from,
        key,
        agent,
        attribution,
    } = query;
    let source = source(from.form(), agent.as_deref(), attribution.as_deref())?;
    let (app, tenant) = (api.app(), &caller.tenant);
    let (row, losses) = if caller.is_operator() {
        app.import(tenant, key, source, &text).await?
    } else {
        let judge = MessagePost::new(&api, &caller).judge_import();
        app.import_judged(tenant, key, source, &text, judge).await?
    };
    let losses = losses.into_iter().map(Into::into).collect();
    Ok((
        StatusCode::CREATED,
        Json(ImportedView {
            thread: row.into(),
            losses,
        }),
    ))
}

/// Appends the messages of a conversation to a thread, and lists the conversion losses. No agent starts.
///
/// The runs of the messages are over. An export in the same format returns these messages unchanged.
/// Pending calls of the thread are withdrawn.
#[utoipa::path(post, path = "/threads/{key}/import", operation_id = "appendMessages", tag = "documents", security(("key" = [])), params(("key" = String, Path), AppendQuery), request_body = ImportedConversation,
    responses((status = 200, body = ImportedView), (status = "default", body = ErrorBody)))]
pub(crate) async fn append(
    State(api): State<Api>,
    caller: Caller,
    thread: ThreadKey,
    Query(query): Query<AppendQuery>,
    JsonText(text): JsonText,
) -> Result<Json<ImportedView>, ApiError> {
    let source = source(
        query.from.form(),
        query.agent.as_deref(),
        query.attribution.as_deref(),
    )?;
    let found = thread.find().await?;
    let _turn = api.turns().of(found.id()).await;
    let found = found.reread().await?;
    let judge = MessagePost::new(&api, &caller).judge_append(&found).await?;
    let tail = query.seq.map(Seq);
    let losses = api
        .app()
        .append(found.row(), tail, source, &text, judge)
        .await
        .map_err(|error| changed(&error, tail).unwrap_or_else(|| error.into()))?;
    Ok(Json(ImportedView {
        thread: found.reread().await?.into_row().into(),
        losses: losses.into_iter().map(Into::into).collect(),
    }))
}

/// The error of an append that expected another last event.
fn changed(error: &ExchangeError, tail: Option<Seq>) -> Option<ApiError> {
    tail?;
    let ExchangeError::Runtime(RuntimeError::Store(StoreError::Conflict {
        expected, found, ..
    })) = error
    else {
        return None;
    };
    let (expected, found) = (*expected, *found);
    Some(ApiError::ThreadChanged { expected, found })
}
