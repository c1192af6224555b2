//! The page of a thread's document.

use super::shown_section::ShownSection;
use crate::app::CheckedDocument;
use crate::auth::Caller;
use crate::body::Query;
use crate::error::ApiError;
use crate::routes::comparison::{Check, checked};
use crate::routes::web::pages::PageParts;
use crate::routes::web::reply::page;
use crate::state::Api;
use crate::threads::ThreadKey;
use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use thread::Json;
use web::{DocumentPage, DocumentView, ThreadSection};

/// The document that a page shows, and the part of it.
#[derive(Deserialize)]
pub(in crate::routes::web) struct DocumentQuery {
    /// The version; the newest one when absent.
    version: Option<String>,
    /// The rules for the check; those for writers when absent.
    check: Option<Check>,
    /// The JSON pointer of the value to show.
    #[serde(default)]
    at: String,
    /// Number of members of the value that are left out at the start.
    #[serde(default)]
    from: usize,
}

/// Shows the document with the result of its check.
pub(in crate::routes::web) async fn read(
    State(api): State<Api>,
    caller: Caller,
    thread: ThreadKey,
    Query(query): Query<DocumentQuery>,
) -> Result<Response, ApiError> {
    let version = query.version.as_deref().filter(|text| !text.is_empty());
    let check = query.check.unwrap_or(Check::Strict);
    let resource = match version {
        Some(version) => format!(
            "document?check=strict&version={}",
            web::path_segment(version)
        ),
        None => "document?check=strict".to_owned(),
    };
    let words = ("Document", resource.as_str());
    let section = ShownSection::find(&thread, ThreadSection::Document, words).await?;
    let view = view(checked(&api, &thread, (version, Some(check))).await?, check);
    let value = view.document.pointer(&query.at);
    let value = value.ok_or_else(|| ApiError::InvalidQuery {
        what: format!("at: the document has no value at {:?}", query.at),
    })?;
    let parts = PageParts::read(&api, &caller).await?;
    let shown = DocumentPage {
        frame: section.frame(&parts),
        key: thread.key(),
        view: &view,
        at: (query.at.as_str(), value),
        from: query.from,
    };
    Ok(page(shown.html()))
}

fn view(checked: CheckedDocument, check: Check) -> DocumentView {
    let CheckedDocument {
        document,
        losses,
        violations,
        hash,
        inexact,
    } = checked;
    DocumentView {
        version: document.version(),
        is_strict: matches!(check, Check::Strict),
        violations: violations.unwrap_or_default(),
        losses,
        hash: hash.ok().map(|hash| hash.to_string()),
        hash_warning: inexact.map(|inexact| inexact.to_string()),
        document: Json::Object(document.into_root()),
    }
}
