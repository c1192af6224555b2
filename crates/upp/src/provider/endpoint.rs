//! The client of an endpoint: its address, keys, headers and limits.

mod session;

pub(super) use session::is_json;
pub(crate) use session::{Answer, Session};

use super::ProviderConfig;
use super::frames::{self, Frame};
use crate::call::{CallBody, EndpointCall, FormField, FormValue};
use crate::codec::Auth;
use crate::error::{Code, Error, Modality};
use crate::http::{http_client_builder, unreached};
use crate::retry::{NoRetry, RetryStrategy};
use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::multipart::{Form, Part};
use secrecy::{ExposeSecret, SecretString};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Makes the error of a response with a status other than 2xx.
type Refusal = dyn Fn(u16, &str) -> Error + Send + Sync;

/// The hosts of the vendors, which refuse requests without a key.
const VENDORS: [&str; 9] = [
    "api.anthropic.com",
    "api.cerebras.ai",
    "api.groq.com",
    "api.mistral.ai",
    "api.moonshot.ai",
    "api.openai.com",
    "api.x.ai",
    "generativelanguage.googleapis.com",
    "openrouter.ai",
];

const BAD_KEY: &str = "the API key can't be a header";

/// The properties of an endpoint that its codec defines.
pub(crate) struct Address<'a> {
    /// The provider's name.
    pub(crate) provider: &'a str,
    /// The kind of model.
    pub(crate) modality: Modality,
    /// The default base URL.
    pub(crate) base_url: &'a str,
    /// How the key travels.
    pub(crate) auth: Auth,
    /// Other headers; the configuration's win over them.
    pub(crate) headers: Vec<(String, String)>,
}

/// Sends the calls of one model. Cloning shares it. All its errors have the model's modality.
#[derive(Clone)]
pub(crate) struct Endpoint {
    provider: Arc<str>,
    modality: Modality,
    pub(super) config: Arc<ProviderConfig>,
    client: reqwest::Client,
    base: Arc<str>,
    auth: Auth,
    /// Whether it refuses requests without a key.
    is_vendors: bool,
    headers: HeaderMap,
    refusal: Arc<Refusal>,
}

// The address and the headers may hold secrets.
impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint")
            .field("provider", &self.provider)
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

impl Endpoint {
    /// Checks the configuration and makes the client of a codec. `refusal` is the codec's function that
    /// reads a response with a status other than 2xx. Nothing is sent.
    pub(crate) fn new<C: ?Sized + Send + Sync + 'static>(
        codec: &Arc<C>,
        address: &Address<'_>,
        refusal: fn(&C, u16, &str) -> Error,
        config: ProviderConfig,
    ) -> Result<Self, Error> {
        let provider = address.provider;
        let of_model = |error: Error| error.with_modality(address.modality);
        let refused = |text: &str| of_model(Error::new(Code::InvalidRequest, provider, text));
        let base = config.base_url.as_deref().unwrap_or(address.base_url);
        let base: Arc<str> = base.trim_end_matches('/').into();
        let url = reqwest::Url::parse(&base)
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https"))
            .ok_or_else(|| refused("the base URL is no HTTP address"))?;
        let headers = address.headers.iter().chain(&config.headers);
        let headers = header_map(headers).map_err(|text| refused(&text))?;
        if let Some(key) = &config.api_key {
            key_header(address.auth, key).ok_or_else(|| refused(BAD_KEY))?;
        }
        let client = match &config.client {
            Some(client) => client.clone(),
            None => http_client_builder(provider)
                .map_err(of_model)?
                .connect_timeout(config.timeouts.connect)
                .build()
                .map_err(|cause| of_model(unreached(provider, cause)))?,
        };
        Ok(Self {
            provider: provider.into(),
            modality: address.modality,
            is_vendors: url.host_str().is_some_and(|host| VENDORS.contains(&host)),
            auth: address.auth,
            config: Arc::new(config),
            client,
            base,
            headers,
            refusal: {
                let codec = Arc::clone(codec);
                Arc::new(move |status, body| refusal(&codec, status, body))
            },
        })
    }

    fn error(&self, code: Code, text: &str) -> Error {
        Error::new(code, &*self.provider, text).with_modality(self.modality)
    }

    pub(super) fn cancelled(&self) -> Error {
        self.error(Code::Cancelled, "the request was cancelled")
    }

    fn unreached(&self, cause: reqwest::Error) -> Error {
        unreached(&self.provider, cause).with_modality(self.modality)
    }

    pub(super) fn retry(&self) -> Arc<dyn RetryStrategy> {
        let retry = self.config.retry.clone();
        retry.unwrap_or_else(|| Arc::new(NoRetry))
    }

    /// Gets the key of one call.
    pub(crate) async fn session(&self, signal: &CancellationToken) -> Result<Session, Error> {
        let key = match (&self.config.api_key, &self.config.keys) {
            (Some(key), _) => Some(key.clone()),
            (None, Some(keys)) => {
                let key = signal.run_until_cancelled(keys.key()).await;
                let key = key.unwrap_or_else(|| Err(self.cancelled()));
                Some(key.map_err(|error| error.with_modality(self.modality))?)
            }
            (None, None) => None,
        };
        let name = key_header_name(self.auth);
        let header = match &key {
            // A header of the caller's wins over ours.
            _ if self.headers.contains_key(&name) => None,
            Some(key) => {
                let value = key_header(self.auth, key);
                Some((
                    name,
                    value.ok_or_else(|| self.error(Code::InvalidRequest, BAD_KEY))?,
                ))
            }
            None if self.is_vendors => {
                let text = "there is no API key, and the provider takes no request without one";
                return Err(self.error(Code::AuthenticationFailed, text));
            }
            None => None,
        };
        Ok(Session {
            endpoint: self.clone(),
            key,
            header,
        })
    }

    /// Waits for `future`, but neither beyond the limit nor after the caller has cancelled.
    async fn within<T>(
        &self,
        limit: Duration,
        what: &str,
        signal: &CancellationToken,
        future: impl Future<Output = T>,
    ) -> Result<T, Error> {
        signal
            .run_until_cancelled(tokio::time::timeout(limit, future))
            .await
            .ok_or_else(|| self.cancelled())?
            .map_err(|_| self.error(Code::Timeout, what))
    }

    fn request(&self, call: &EndpointCall, accept: &str) -> Result<reqwest::RequestBuilder, Error> {
        let url = reqwest::Url::parse(&format!("{}{}", self.base, call.path));
        let bad = |_| self.error(Code::InvalidRequest, "the endpoint has no HTTP address");
        let request = self.client.post(url.map_err(bad)?).header(ACCEPT, accept);
        let request = match &call.body {
            CallBody::Json(text) => request
                .header(CONTENT_TYPE, "application/json")
                .body(text.clone()),
            CallBody::Form(fields) => request.multipart(self.form(fields)?),
        };
        // Last, because the caller's own headers win.
        Ok(request.headers(self.headers.clone()))
    }

    fn form(&self, fields: &[FormField]) -> Result<Form, Error> {
        let mut form = Form::new();
        for FormField { name, value } in fields {
            let part = match value {
                FormValue::Text(text) => Part::text(text.clone()),
                FormValue::File {
                    file_name,
                    mime_type,
                    data,
                } => {
                    let length = u64::try_from(data.len()).unwrap_or(u64::MAX);
                    let part = Part::stream_with_length(data.clone(), length);
                    let typed = part.file_name(file_name.clone()).mime_str(mime_type);
                    let bad = format!("{name}: '{mime_type}' is no MIME type");
                    typed.map_err(|_| self.error(Code::InvalidRequest, &bad))?
                }
            };
            form = form.part(name.clone(), part);
        }
        Ok(form)
    }

    /// The body, up to the limit.
    pub(super) async fn whole(
        &self,
        response: reqwest::Response,
        signal: &CancellationToken,
    ) -> Result<String, Error> {
        let mut body = Vec::new();
        let mut chunks = std::pin::pin!(self.chunks(response, signal.clone()));
        while let Some(chunk) = chunks.next().await {
            body.extend_from_slice(&chunk?);
            let most = self.config.max_body_bytes;
            if body.len() > most {
                let text = format!("the response is longer than {most} bytes");
                return Err(self.error(Code::InvalidResponse, &text));
            }
        }
        Ok(String::from_utf8_lossy(&body).into_owned())
    }

    fn chunks(
        &self,
        response: reqwest::Response,
        signal: CancellationToken,
    ) -> impl Stream<Item = Result<Bytes, Error>> + Send + use<> + 'static {
        let this = self.clone();
        async_stream::try_stream! {
            let mut bytes = std::pin::pin!(response.bytes_stream());
            let late = "the provider sent nothing for too long";
            while let Some(chunk) = this
                .within(this.config.timeouts.idle, late, &signal, bytes.next())
                .await?
            {
                yield chunk.map_err(|cause| this.unreached(cause))?;
            }
        }
    }

    /// The bytes of a stream, up to the limit.
    pub(super) fn streamed(
        &self,
        response: reqwest::Response,
        signal: CancellationToken,
    ) -> impl Stream<Item = Result<Bytes, Error>> + Send + use<> + 'static {
        let (this, most) = (self.clone(), self.config.max_stream_bytes);
        let mut left = most;
        self.chunks(response, signal).map(move |chunk| {
            let chunk = chunk?;
            left = left.checked_sub(chunk.len()).ok_or_else(|| {
                let text = format!("the streamed answer is longer than {most} bytes");
                this.error(Code::InvalidResponse, &text)
            })?;
            Ok(chunk)
        })
    }

    /// The server-sent events of a stream.
    fn events(
        &self,
        response: reqwest::Response,
        signal: CancellationToken,
    ) -> impl Stream<Item = Result<Frame, Error>> + Send + use<> + 'static {
        let this = self.clone();
        let bytes = self.streamed(response, signal);
        frames::events(bytes, self.config.max_event_bytes).map(move |frame| {
            frame.map_err(|error| {
                error
                    .into_error(&this.provider)
                    .with_modality(this.modality)
            })
        })
    }
}

fn key_header_name(auth: Auth) -> HeaderName {
    match auth {
        Auth::Bearer => AUTHORIZATION,
        Auth::Header(name) => HeaderName::from_static(name),
    }
}

/// The value of the key's header; `None` if the key has characters that a header can't have.
fn key_header(auth: Auth, key: &SecretString) -> Option<HeaderValue> {
    let text = match auth {
        Auth::Bearer => format!("Bearer {}", key.expose_secret()),
        Auth::Header(_) => key.expose_secret().to_owned(),
    };
    let mut value = HeaderValue::from_str(&text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// The headers, of which the last one of a name counts.
fn header_map<'a>(pairs: impl Iterator<Item = &'a (String, String)>) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        let bad = || format!("the header '{name}' is malformed");
        let mut value = HeaderValue::from_str(value).map_err(|_| bad())?;
        value.set_sensitive(true);
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad())?;
        headers.insert(name, value);
    }
    Ok(headers)
}
