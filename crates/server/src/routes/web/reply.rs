//! The responses of pages: their headers, and the result of a form.

use super::assets::ASSETS;
use crate::error::Failure;
use axum::Json;
use axum::response::{Html, IntoResponse as _, Redirect, Response};
use http::{HeaderMap, HeaderName, StatusCode, header};
use serde::Serialize;
use web::{ErrorPage, Markup};

/// The policy of every page: own scripts, styles and images, and images from memory.
pub(super) const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; \
     font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; \
     require-trusted-types-for 'script'; trusted-types loomline";

/// A page with its headers.
pub(super) fn page(page: Markup) -> Response {
    let name = HeaderName::from_static;
    let headers = [
        (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
        // With `no-referrer` browsers send forms without a script with `Origin: null`.
        (header::REFERRER_POLICY, "same-origin"),
        (header::CACHE_CONTROL, "no-store"),
        (name("cross-origin-opener-policy"), "same-origin"),
        (name("cross-origin-resource-policy"), "same-origin"),
        (
            name("permissions-policy"),
            "camera=(), microphone=(), geolocation=(), payment=(), usb=()",
        ),
    ];
    (headers, Html(page.into_string())).into_response()
}

/// The page of an error.
pub(crate) fn error_page(
    status: StatusCode,
    failure: &Failure,
    request_id: Option<&str>,
) -> Response {
    let shown = ErrorPage {
        assets: &ASSETS,
        status: status.as_u16(),
        code: failure.code,
        message: &failure.message,
        request_id,
    };
    page(shown.html())
}

/// The result of a form.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Done {
    /// The page to load; none if the open page changes by its stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    location: Option<String>,
    /// The key for the next message.
    #[serde(skip_serializing_if = "Option::is_none")]
    idempotency_key: Option<String>,
}

impl Done {
    /// The open page shows the result.
    pub(super) fn here() -> Self {
        Self::default()
    }

    /// Another page shows the result.
    pub(super) fn at(location: String) -> Self {
        Self {
            location: Some(location),
            ..Self::default()
        }
    }

    /// The next message has this key.
    pub(super) fn then(self, idempotency_key: String) -> Self {
        Self {
            idempotency_key: Some(idempotency_key),
            ..self
        }
    }

    /// The response: JSON for the page's script, or a redirect for a page without one.
    pub(super) fn response(self, headers: &HeaderMap, fallback: &str) -> Response {
        if crate::sse::wants_json(headers) {
            return Json(self).into_response();
        }
        let location = self.location.as_deref().unwrap_or(fallback);
        Redirect::to(location).into_response()
    }
}

/// The path of a thread's chat.
pub(super) fn chat_path(key: &str) -> String {
    format!("/chat/{}", web::path_segment(key))
}
