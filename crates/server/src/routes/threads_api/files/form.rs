//! The form of an upload.

use crate::auth::Caller;
use crate::body::{ArrivalError, Arriving, BodyLease, grow};
use crate::error::ApiError;
use crate::error::openai::Worded;
use crate::state::Api;
use axum::RequestPartsExt as _;
use axum::body::Body;
use axum::extract::multipart::{Field, Multipart, MultipartError};
use axum::extract::{DefaultBodyLimit, FromRequest, Request};
use std::error::Error;
use std::time::Duration;

/// Time limit for a form to arrive.
const ARRIVAL: Duration = Duration::from_mins(10);
/// Maximum bytes of the form apart from the file.
const MAX_OVERHEAD: usize = 64 << 10;
/// Maximum number of text fields; each has at most `MAX_FIELD` bytes.
const MAX_FIELDS: usize = 32;
const MAX_FIELD: usize = 1 << 10;

/// A form with one file, from a caller who may store files.
pub(crate) struct UploadForm {
    /// The text fields, by name.
    pub(super) fields: Vec<(String, String)>,
    /// The file's name.
    pub(super) filename: String,
    /// Its content.
    pub(super) content: Vec<u8>,
}

impl FromRequest<Api> for UploadForm {
    type Rejection = ApiError;

    async fn from_request(request: Request, api: &Api) -> Result<Self, ApiError> {
        let (mut parts, body) = request.into_parts();
        // Before a long body is read that is not wanted.
        let caller: Caller = parts.extract().await?;
        caller.check_sidecar()?;
        let lease: BodyLease = parts.extract().await?;
        let config = api.app().config();
        let rate = config.limits.body_bytes_per_second;
        let limit = config.server.max_file_bytes.min(lease.max());
        let body = Body::new(Arriving::new(body, lease, rate, ARRIVAL));
        let mut request = Request::from_parts(parts, body);
        DefaultBodyLimit::max(limit.saturating_add(MAX_OVERHEAD)).apply(&mut request);
        let form = Multipart::from_request(request, api).await;
        let form = form.map_err(|_| {
            malformed("the body is a form of the type multipart/form-data with a boundary")
        })?;
        Self::read(form, limit).await
    }
}

impl UploadForm {
    async fn read(mut form: Multipart, limit: usize) -> Result<Self, ApiError> {
        let (mut fields, mut file) = (Vec::new(), None);
        let broken = |error: MultipartError| broken(&error, limit);
        while let Some(field) = form.next_field().await.map_err(broken)? {
            let name = field.name().unwrap_or_default().to_owned();
            if name == "file" {
                if file.is_some() {
                    return Err(malformed("the form has one file"));
                }
                let filename = field.file_name().unwrap_or("file").to_owned();
                let too_large = ApiError::BodyTooLarge { limit };
                file = Some((filename, collected(field, limit, too_large).await?));
                continue;
            }
            if fields.len() == MAX_FIELDS {
                return Err(malformed("the form has at most 32 text fields"));
            }
            let too_large = malformed("a text field of the form has at most 1024 bytes");
            let text = collected(field, MAX_FIELD, too_large).await?;
            let text = String::from_utf8(text);
            let text = text.map_err(|_| malformed("the text fields of the form are UTF-8"))?;
            fields.push((name, text));
        }
        let (filename, content) = file.ok_or_else(|| {
            let message = "Missing required parameter: 'file'.";
            Worded::invalid(Some("file"), Some("missing_required_parameter"), message)
        })?;
        Ok(Self {
            fields,
            filename,
            content,
        })
    }
}

async fn collected(
    mut field: Field<'_>,
    limit: usize,
    too_large: ApiError,
) -> Result<Vec<u8>, ApiError> {
    let mut bytes = Vec::new();
    while let Some(piece) = field.chunk().await.map_err(|error| broken(&error, limit))? {
        if bytes.len() + piece.len() > limit {
            return Err(too_large);
        }
        grow(&mut bytes, piece.len());
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes)
}

fn broken(error: &MultipartError, limit: usize) -> ApiError {
    if error.status() == http::StatusCode::PAYLOAD_TOO_LARGE {
        return ApiError::BodyTooLarge { limit };
    }
    let mut cause: Option<&dyn Error> = Some(error);
    while let Some(known) = cause {
        match known.downcast_ref::<ArrivalError>() {
            Some(ArrivalError::Timeout) => return ApiError::BodyTimeout,
            Some(ArrivalError::Limit(reached)) => return (*reached).into(),
            Some(ArrivalError::Broken(_)) => return ApiError::BodyBroken,
            None => cause = known.source(),
        }
    }
    malformed(&format!("the form can't be read: {error}"))
}

fn malformed(what: &str) -> ApiError {
    Worded::invalid(None, None, format!("Invalid body: {what}.")).into()
}
