//! Threads as documents: given out, and taken in.

use super::check_named_key;
use super::view::ThreadView;
use crate::aitp::Speech;
use crate::app::{ExchangeError, Format};
use crate::auth::Caller;
use crate::body::{JsonText, PathOf, Query};
use crate::error::{ApiError, ErrorBody, told};
use crate::guard::Tenant;
use crate::state::Api;
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use interop::Loss;
use serde::{Deserialize, Serialize};
use thread::CanonicalOptions;
use utoipa::{IntoParams, ToSchema};

/// What a file holds.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Source {
    Threadprotocol,
    PydanticAi,
}

/// What is taken in, and under which key.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ImportQuery {
    /// `threadprotocol` or `pydantic-ai`.
    #[param(value_type = String)]
    from: Source,
    /// The key of the new thread; a new one when absent.
    key: Option<String>,
}

/// A thread that was taken in.
#[derive(Serialize, ToSchema)]
pub(crate) struct ImportedView {
    /// The thread.
    thread: ThreadView,
    /// What could not be carried.
    losses: Vec<LossView>,
}

/// One thing that could not be carried.
#[derive(Serialize, ToSchema)]
pub(crate) struct LossView {
    /// Where it stood in the file: a JSON pointer.
    pointer: String,
    /// What was lost.
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
                what: told(&error),
                pointer: Some(error.pointer),
            },
            ExchangeError::PydanticAi(error) => Self::InvalidDocument {
                what: told(&error),
                pointer: Some(error.pointer().to_owned()),
            },
            ExchangeError::Import(error) => Self::InvalidDocument {
                what: told(&error),
                pointer: None,
            },
            error @ ExchangeError::Broken(_) => Self::Export(error),
        }
    }
}

/// Gives a thread out as a ThreadProtocol document (0.0.4), with the hash of its canonical form.
#[utoipa::path(get, path = "/threads/{key}/document", operation_id = "exportDocument", tag = "documents", security(("key" = [])), params(("key" = String, Path)),
    responses((status = 200, body = Object, headers(
        ("loomline-content-hash" = String, description = "sha256: and the hash of the canonical form"),
        ("loomline-losses" = u64, description = "How many things a document has no place for"))),
        (status = "default", body = ErrorBody)))]
pub(crate) async fn export(
    State(api): State<Api>,
    Tenant(tenant): Tenant,
    PathOf(key): PathOf<String>,
) -> Result<Response, ApiError> {
    let converted = api.app().converted(&tenant, &key).await?;
    let document = converted.value;
    let (text, hash) = tokio::task::spawn_blocking(move || {
        (
            document.encode(),
            thread::hash(&document, CanonicalOptions::default()).ok(),
        )
    })
    .await
    .map_err(|error| ApiError::Export(error.into()))?;
    let mut response = ([(header::CONTENT_TYPE, "application/json")], text).into_response();
    let headers = response.headers_mut();
    headers.insert("loomline-losses", converted.losses.len().into());
    // A number that no double can stand for has no canonical form, so there is no hash.
    if let Some(hash) = hash.and_then(|hash| HeaderValue::try_from(hash.to_string()).ok()) {
        headers.insert("loomline-content-hash", hash);
    }
    Ok(response)
}

/// Takes a conversation in as a new thread; says what could not be carried.
#[utoipa::path(post, path = "/import", operation_id = "importDocument", tag = "documents", security(("key" = [])), params(ImportQuery), request_body = Object,
    responses((status = 201, body = ImportedView), (status = "default", body = ErrorBody)))]
pub(crate) async fn import(
    State(api): State<Api>,
    caller: Caller,
    Query(query): Query<ImportQuery>,
    JsonText(text): JsonText,
) -> Result<(StatusCode, Json<ImportedView>), ApiError> {
    check_named_key(&caller, query.key.as_deref(), "")?;
    let format = match query.from {
        Source::Threadprotocol => Format::Thread,
        Source::PydanticAi => Format::PydanticAi,
    };
    let (app, tenant) = (api.app(), &caller.tenant);
    let (row, losses) = if caller.is_operator() {
        app.import(tenant, query.key, format, &text).await?
    } else {
        let judge = Speech::new(&api, &caller).judge_import();
        app.import_judged(tenant, query.key, format, &text, judge)
            .await?
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
