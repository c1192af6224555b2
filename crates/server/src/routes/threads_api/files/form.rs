//! The form of an upload.

use crate::auth::Caller;
use crate::body::form::{Form, FormError, FormFile, FormLimits};
use crate::error::ApiError;
use crate::error::openai::Worded;
use crate::state::Api;
use axum::RequestPartsExt as _;
use axum::extract::{FromRequest, Request};
use std::time::Duration;

/// Time limit for a form to arrive.
const ARRIVAL: Duration = Duration::from_mins(10);
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
        let limits = FormLimits {
            bytes: api.app().config().server.max_file_bytes,
            field_bytes: MAX_FIELD,
            fields: MAX_FIELDS,
            files: 1,
            arrival: ARRIVAL,
        };
        let form = Form::read(Request::from_parts(parts, body), api, limits).await;
        let Form { fields, files } = form.map_err(refused)?;
        let file = files.into_iter().next().ok_or_else(|| {
            let message = "Missing required parameter: 'file'.";
            Worded::invalid(Some("file"), Some("missing_required_parameter"), message)
        })?;
        let FormFile { name, content, .. } = file;
        Ok(Self {
            fields,
            filename: name,
            content,
        })
    }
}

/// The error in the words of `OpenAI`.
fn refused(error: FormError) -> ApiError {
    match error {
        FormError::Malformed(what) => {
            Worded::invalid(None, None, format!("Invalid body: {what}.")).into()
        }
        FormError::TooLarge { .. }
        | FormError::Timeout
        | FormError::Broken
        | FormError::Limit(_)
        | FormError::Refused(_) => error.into(),
    }
}
