//! The forms of pages.

use super::VIA;
use super::reply::Done;
use crate::auth::Caller;
use crate::body::form::{Form, FormLimits};
use crate::config::Config;
use crate::error::ApiError;
use crate::state::Api;
use crate::threads::ThreadKey;
use axum::RequestExt as _;
use axum::extract::{FromRequest, Request};
use axum::response::Response;
use http::HeaderMap;
use runtime::RequestToken;
use std::time::Duration;

/// Time limit for a form to arrive.
const ARRIVAL: Duration = Duration::from_mins(2);
/// Maximum number of fields in the answer to a request: three for each of 1,000 products, and others.
const MAX_QUESTIONS: usize = 3_100;
/// Number of bytes of a body for each byte of a file, with base64 and JSON.
const BASE64_SHARE: usize = 3;

/// Whether an address is a path of this server: browsers read some others as those of another one.
pub(super) fn is_local(path: &str) -> bool {
    let is_plain = path.chars().all(|c| c.is_ascii_graphic() && c != '\\');
    is_plain && path.starts_with('/') && !path.starts_with("//")
}

/// The size of all files of a message, in bytes. They are stored within the message.
pub(super) fn max_files(config: &Config) -> usize {
    config
        .limits
        .message_bytes
        .min(config.server.max_body_bytes)
        / 4
        * BASE64_SHARE
}

/// A form of a page: its text fields and its files.
pub(super) struct PageForm(Form);

impl PageForm {
    async fn read(request: Request, api: &Api, fields: usize) -> Result<Self, ApiError> {
        let max = api.app().config().server.max_body_bytes;
        let limits = FormLimits {
            bytes: max,
            field_bytes: max,
            fields,
            files: 16,
            arrival: ARRIVAL,
        };
        let form = Form::read(request, api, limits).await?;
        Ok(Self(form))
    }

    /// The text fields by name, in order.
    pub(super) fn fields(&self) -> &[(String, String)] {
        &self.0.fields
    }

    /// A field; empty if the form does not have it.
    pub(super) fn text(&self, name: &str) -> &str {
        self.optional(name).unwrap_or_default()
    }

    /// A field that is not blank.
    pub(super) fn optional(&self, name: &str) -> Option<&str> {
        let mut fields = self.0.fields.iter();
        let (_, value) = fields.find(|(field, _)| field == name)?;
        Some(value.as_str()).filter(|value| !value.trim().is_empty())
    }

    /// A field that the form must have.
    pub(super) fn required(&self, name: &str) -> Result<&str, ApiError> {
        self.optional(name)
            .ok_or_else(|| ApiError::field(format!("/{name}"), "the form needs this field"))
    }

    /// The page of this server to return to, if the form names one.
    pub(super) fn back(&self) -> Option<&str> {
        self.optional("to").filter(|path| is_local(path))
    }

    /// The files: name, media type, content.
    pub(super) fn files(&self) -> &[crate::body::form::FormFile] {
        &self.0.files
    }
}

/// A request to do what a form asks for.
pub(super) struct Action<const MAX_FIELDS: usize = 32> {
    pub(super) api: Api,
    pub(super) caller: Caller,
    pub(super) headers: HeaderMap,
    pub(super) form: PageForm,
}

/// The action of a form with a field for each question of somebody else.
pub(super) type LongAction = Action<MAX_QUESTIONS>;

impl<const MAX_FIELDS: usize> Action<MAX_FIELDS> {
    /// The thread that the form names.
    pub(super) fn thread(&self) -> Result<ThreadKey, ApiError> {
        let key = self.form.required("thread")?;
        ThreadKey::named(&self.api, &self.caller, key, "/thread")
    }

    /// The token of the form for a kind of request, so that it is sent once.
    pub(super) fn token(&self, kind: &str) -> Option<RequestToken> {
        let token = self.form.optional("idempotency_key")?;
        Some(RequestToken::from(format!("{VIA}{kind}:{token}")))
    }

    /// The response if the page that is open shows the result. Without a script, `path` is that page.
    pub(super) fn shown_at(&self, path: &str) -> Response {
        Done::here().response(&self.headers, path)
    }

    /// The response if another page shows the result.
    pub(super) fn moved_to(&self, path: &str) -> Response {
        Done::at(path.to_owned()).response(&self.headers, path)
    }
}

impl<const MAX_FIELDS: usize> FromRequest<Api> for Action<MAX_FIELDS> {
    type Rejection = ApiError;

    async fn from_request(mut request: Request, api: &Api) -> Result<Self, ApiError> {
        let caller = request.extract_parts_with_state(api).await?;
        let headers = request.headers().clone();
        Ok(Self {
            api: api.clone(),
            caller,
            headers,
            form: PageForm::read(request, api, MAX_FIELDS).await?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::is_local;

    #[test]
    fn only_a_path_of_this_server_is_returned_to() {
        for own in ["/", "/inbox?kind=approval&agent=a%20b", "/chat/k#r-1"] {
            assert!(is_local(own), "{own}");
        }
        for other in [
            "",
            "inbox",
            "//evil.example",
            "/\\evil.example",
            "/\t/evil.example",
            "https://evil.example",
            "javascript:alert(1)",
            "/a b",
            "/\r\nset-cookie: a=b",
        ] {
            assert!(!is_local(other), "{other:?}");
        }
    }
}
