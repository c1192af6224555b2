//! The bodies of HTML forms: text fields and files, within limits.

use super::{ArrivalError, Arriving, BodyLease, grow};
use crate::error::ApiError;
use crate::pause::check_pause_again;
use crate::state::Api;
use axum::RequestPartsExt as _;
use axum::body::Body;
use axum::extract::multipart::{Field, Multipart, MultipartError};
use axum::extract::{DefaultBodyLimit, FromRequest as _, Request};
use http::header;
use runtime::LimitReached;
use std::error::Error;
use std::time::Duration;

/// Maximum bytes of a form apart from one file of the greatest size.
const OVERHEAD: usize = 64 << 10;
/// The media type of a file without a declared one.
const OCTETS: &str = "application/octet-stream";

/// The limits of a form.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FormLimits {
    /// Maximum size of each file, in bytes; a tenant's share of the memory may be smaller.
    pub(crate) bytes: usize,
    /// Maximum size of a text field, in bytes.
    pub(crate) field_bytes: usize,
    /// Maximum number of text fields.
    pub(crate) fields: usize,
    /// Maximum number of files.
    pub(crate) files: usize,
    /// Time limit for the form to arrive.
    pub(crate) arrival: Duration,
}

/// A form.
#[derive(Debug, Default)]
pub(crate) struct Form {
    /// The text fields, by name, in order.
    pub(crate) fields: Vec<(String, String)>,
    /// The files, in order. Fields without a chosen file are left out.
    pub(crate) files: Vec<FormFile>,
}

/// A file of a form.
#[derive(Debug)]
pub(crate) struct FormFile {
    /// Its name.
    pub(crate) name: String,
    /// The media type that the client declares.
    #[cfg_attr(not(feature = "web"), expect(dead_code, reason = "only pages read it"))]
    pub(crate) media_type: String,
    /// Its content.
    pub(crate) content: Vec<u8>,
}

/// Why a form can't be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FormError {
    #[error("{0}")]
    Malformed(String),
    #[error("the body is longer than {limit} bytes")]
    TooLarge { limit: usize },
    #[error("the body did not arrive in time")]
    Timeout,
    #[error("the body broke off")]
    Broken,
    #[error(transparent)]
    Limit(LimitReached),
    #[error(transparent)]
    Refused(ApiError),
}

impl From<FormError> for ApiError {
    fn from(error: FormError) -> Self {
        match error {
            FormError::Malformed(what) => Self::field("", what),
            FormError::TooLarge { limit } => Self::BodyTooLarge { limit },
            FormError::Timeout => Self::BodyTimeout,
            FormError::Broken => Self::BodyBroken,
            FormError::Limit(reached) => reached.into(),
            FormError::Refused(error) => error,
        }
    }
}

impl Form {
    /// Reads the form of a request, in either encoding of HTML forms.
    pub(crate) async fn read(
        request: Request,
        api: &Api,
        limits: FormLimits,
    ) -> Result<Self, FormError> {
        let extensions = request.extensions().clone();
        let form = Self::arrived(request, api, limits).await?;
        check_pause_again(api, &extensions).map_err(FormError::Refused)?;
        Ok(form)
    }

    async fn arrived(request: Request, api: &Api, limits: FormLimits) -> Result<Self, FormError> {
        let (mut parts, body) = request.into_parts();
        let lease = parts.extract::<BodyLease>().await;
        let lease = lease.map_err(FormError::Refused)?;
        let rate = api.app().config().limits.body_bytes_per_second;
        let limits = FormLimits {
            bytes: limits.bytes.min(lease.max()),
            ..limits
        };
        let content_type = parts.headers.get(header::CONTENT_TYPE);
        let content_type = content_type.and_then(|value| value.to_str().ok());
        let is_plain = content_type
            .is_some_and(|value| value.starts_with("application/x-www-form-urlencoded"));
        let arriving = Arriving::new(body, lease, rate, limits.arrival);
        if is_plain {
            let bytes = arriving.collect(limits.bytes).await;
            return Self::plain(&bytes.map_err(FormError::Refused)?, limits);
        }
        let mut request = Request::from_parts(parts, Body::new(arriving));
        let all = limits.bytes.saturating_add(OVERHEAD);
        DefaultBodyLimit::max(all).apply(&mut request);
        let form = Multipart::from_request(request, api).await;
        let form = form.map_err(|_| {
            malformed("the body is a form of the type multipart/form-data with a boundary")
        })?;
        Self::multipart(form, limits).await
    }

    fn plain(bytes: &[u8], limits: FormLimits) -> Result<Self, FormError> {
        let mut form = Self::default();
        for (name, value) in form_urlencoded::parse(bytes) {
            form.add_field(name.into_owned(), value.into_owned(), limits)?;
        }
        Ok(form)
    }

    fn add_field(
        &mut self,
        name: String,
        value: String,
        limits: FormLimits,
    ) -> Result<(), FormError> {
        if self.fields.len() == limits.fields {
            let what = format!("the form has at most {} text fields", limits.fields);
            return Err(malformed(what));
        }
        if value.len() > limits.field_bytes {
            return Err(too_long(limits));
        }
        self.fields.push((name, value));
        Ok(())
    }

    async fn multipart(mut multipart: Multipart, limits: FormLimits) -> Result<Self, FormError> {
        let mut form = Self::default();
        let broken = |error: MultipartError| broken(&error, limits.bytes);
        while let Some(field) = multipart.next_field().await.map_err(broken)? {
            let name = field.name().unwrap_or_default().to_owned();
            let Some(file) = field.file_name().map(str::to_owned) else {
                let text = collected(field, limits.field_bytes, || too_long(limits)).await?;
                let text = String::from_utf8(text);
                let text = text.map_err(|_| malformed("the text fields of the form are UTF-8"))?;
                form.add_field(name, text, limits)?;
                continue;
            };
            if form.files.len() == limits.files {
                return Err(malformed(match limits.files {
                    1 => "the form has one file".to_owned(),
                    n => format!("the form has at most {n} files"),
                }));
            }
            let media_type = field.content_type().unwrap_or(OCTETS).to_owned();
            let limit = limits.bytes;
            let content = collected(field, limit, || FormError::TooLarge { limit }).await?;
            if file.is_empty() && content.is_empty() {
                continue;
            }
            form.files.push(FormFile {
                name: file,
                media_type,
                content,
            });
        }
        Ok(form)
    }
}

async fn collected(
    mut field: Field<'_>,
    limit: usize,
    too_long: impl FnOnce() -> FormError,
) -> Result<Vec<u8>, FormError> {
    let mut bytes = Vec::new();
    while let Some(piece) = field.chunk().await.map_err(|error| broken(&error, limit))? {
        if bytes.len() + piece.len() > limit {
            return Err(too_long());
        }
        grow(&mut bytes, piece.len());
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes)
}

fn too_long(limits: FormLimits) -> FormError {
    let limit = limits.field_bytes;
    malformed(format!(
        "a text field of the form has at most {limit} bytes"
    ))
}

fn broken(error: &MultipartError, limit: usize) -> FormError {
    if error.status() == http::StatusCode::PAYLOAD_TOO_LARGE {
        return FormError::TooLarge { limit };
    }
    let mut cause: Option<&dyn Error> = Some(error);
    while let Some(known) = cause {
        match known.downcast_ref::<ArrivalError>() {
            Some(ArrivalError::Timeout) => return FormError::Timeout,
            Some(ArrivalError::Limit(reached)) => return FormError::Limit(*reached),
            Some(ArrivalError::Broken(_)) => return FormError::Broken,
            None => cause = known.source(),
        }
    }
    malformed(format!("the form can't be read: {error}"))
}

fn malformed(what: impl Into<String>) -> FormError {
    FormError::Malformed(what.into())
}
