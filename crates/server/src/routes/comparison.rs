//! The differences between threads, and checks of their documents.

use super::documents::LossView;
use crate::app::CheckedDocument;
use crate::body::Query;
use crate::error::{ApiError, ErrorBody};
use crate::state::Api;
use crate::threads::{ThreadKey, check_key};
use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use thread::diff::Diff;
use thread::{Profile, Severity, Version, Violation};
use timeline::Payload;
use utoipa::{IntoParams, ToSchema};

/// Maximum number of violations in a report.
const MAX_VIOLATIONS: usize = 1_000;

/// The thread to compare with.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct DiffQuery {
    /// The key of the other thread.
    with: String,
}

/// The differences between two documents, as `loomline diff --json` prints them.
#[derive(ToSchema)]
#[expect(dead_code, reason = "the schema of a text that the diff writes")]
pub(crate) struct DocumentDiff {
    /// The hash of the text of the thread's document.
    from: String,
    /// The hash of the text of the other document.
    to: String,
    /// The changes of the root, the agents and the turns; those of messages and parts are in `inner`.
    changes: Vec<Map<String, Value>>,
}

/// The rules for a check.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Check {
    Strict,
    Lenient,
}

/// The document of a thread, and the result of its check.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DocumentReport {
    /// The version of the document.
    version: String,
    /// `valid` or `invalid`; absent without `check`.
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<&'static str>,
    /// The breaches of the rules, at most 1,000; absent without `check`.
    #[serde(skip_serializing_if = "Option::is_none")]
    violations: Option<Vec<ViolationView>>,
    /// The data that the document can't hold.
    losses: Vec<LossView>,
    /// `sha256:` and the hash of the canonical form; absent if a number has no canonical form.
    #[serde(skip_serializing_if = "Option::is_none")]
    hash: Option<String>,
    /// Why the hash is not exact.
    #[serde(skip_serializing_if = "Option::is_none")]
    hash_warning: Option<String>,
    /// The document.
    #[schema(value_type = Object)]
    document: Payload,
}

/// A breach of the rules.
#[derive(Serialize, ToSchema)]
pub(crate) struct ViolationView {
    /// `error` or `warning`.
    severity: &'static str,
    /// The JSON pointer of the fault.
    pointer: String,
    /// The rule.
    rule: &'static str,
    /// The fault, for people.
    message: String,
}

impl From<Violation> for ViolationView {
    fn from(violation: Violation) -> Self {
        let Violation {
            pointer,
            rule,
            severity,
            message,
        } = violation;
        Self {
            severity: match severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
            },
            pointer,
            rule: rule.id(),
            message,
        }
    }
}

/// Compares the documents of two threads, as `loomline diff` does.
#[utoipa::path(get, path = "/threads/{key}/diff", operation_id = "diffThreads", tag = "documents", security(("key" = [])), params(("key" = String, Path), DiffQuery),
    responses((status = 200, body = DocumentDiff), (status = "default", body = ErrorBody)))]
pub(crate) async fn diff(
    State(api): State<Api>,
    thread: ThreadKey,
    Query(query): Query<DiffQuery>,
) -> Result<Json<Payload>, ApiError> {
    check_key(&query.with, "")?;
    let diff = differences(&api, &thread, &thread.forked(&query.with)?).await?;
    let text = diff.to_json().to_text();
    let payload = Payload::from_text(text).map_err(|_| ApiError::Panicked)?;
    Ok(Json(payload))
}

/// The differences between the documents of two threads. Costs time proportional to both.
pub(crate) async fn differences(
    api: &Api,
    thread: &ThreadKey,
    other: &ThreadKey,
) -> Result<Diff, ApiError> {
    let keys = (thread.key(), other.key());
    Ok(api.app().diff(thread.tenant(), keys).await?)
}

/// The document of a thread in a version, with the violations of the rules. Costs time proportional to the
/// thread.
pub(crate) async fn checked(
    api: &Api,
    thread: &ThreadKey,
    (version, check): (Option<&str>, Option<Check>),
) -> Result<CheckedDocument, ApiError> {
    let version = version.map(Version::from);
    let profile = check.map(|check| match check {
        Check::Strict => Profile::Strict,
        Check::Lenient => Profile::Lenient,
    });
    let checked = api
        .app()
        .checked(thread.tenant(), thread.key(), (version, profile))
        .await?;
    checked.map_err(|error| ApiError::InvalidQuery {
        what: format!("version: {}", crate::error::render_error(&error)),
    })
}

/// The document of a thread in a version, with the result of its check.
pub(super) async fn report(
    api: &Api,
    thread: &ThreadKey,
    wanted: (Option<&str>, Option<Check>),
) -> Result<DocumentReport, ApiError> {
    let CheckedDocument {
        document,
        losses,
        violations,
        hash,
        inexact,
    } = checked(api, thread, wanted).await?;
    let is_error = |violation: &Violation| violation.severity == Severity::Error;
    let verdict = violations.as_ref().map(|violations| {
        if violations.iter().any(is_error) {
            "invalid"
        } else {
            "valid"
        }
    });
    let violations = violations.map(|violations| {
        let listed = violations.into_iter().take(MAX_VIOLATIONS);
        listed.map(Into::into).collect()
    });
    Ok(DocumentReport {
        version: document.version().to_string(),
        verdict,
        violations,
        losses: losses.into_iter().map(Into::into).collect(),
        hash: hash.ok().map(|hash| hash.to_string()),
        hash_warning: inexact.map(|inexact| inexact.to_string()),
        document: Payload::from_text(document.encode()).map_err(|_| ApiError::Panicked)?,
    })
}
