//! The sessions of the web interface: a cookie represents a key or a token. A token of the widget does so
//! within limits.
//!
//! The browser has a secret, the store its hash. Each request makes the caller anew from the current
//! configuration, so a key that is removed or may do less acts at once.

use crate::auth::{self, Caller, SessionCredential, SubjectBudgets, TokenLimits};
use crate::error::ApiError;
use crate::hex::hex;
use crate::state::Api;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::{HeaderMap, HeaderValue, header};
use jiff::Timestamp;
use runtime::objects::{NewObject, ObjectPage, SidecarObject};
use runtime::{RuntimeError, StoreError, TenantId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The kind of sessions in the table of sidecar objects.
const SESSION: &str = "web-session";
/// The kind of the widget's tokens in the table of sidecar objects.
const TOKEN: &str = "web-token";
/// The prefix of the widget's tokens.
const TOKEN_PREFIX: &str = "llw_";
/// How long a token lasts.
const TOKEN_LIFETIME: Duration = Duration::from_mins(10);
/// The name of the cookie. Browsers accept the prefix only with `Secure`, `Path=/` and no `Domain`.
const COOKIE: &str = "__Host-loomline";
/// The attributes of the cookie.
const ATTRIBUTES: &str = "Path=/; Secure; HttpOnly; SameSite=Strict";
/// Number of the oldest sessions that are looked at when one begins: expired ones are deleted.
const SWEPT: usize = 100;
/// Maximum number of attempts to log in per minute from one address.
const ATTEMPTS: NonZeroU32 = NonZeroU32::new(20).unwrap();

/// A stored session, or a token of the widget.
#[derive(Serialize, Deserialize)]
struct StoredSession {
    #[serde(flatten)]
    credential: SessionCredential,
    #[serde(rename = "expiresAt")]
    expires_at: Timestamp,
    /// The limits of a token; none for a session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    limits: Option<TokenLimits>,
}

/// The place of a session or a token in the store.
struct SessionRef {
    tenant: TenantId,
    kind: &'static str,
    /// The hash of the secret.
    id: String,
}

impl SessionRef {
    fn new(tenant: TenantId, kind: &'static str, secret: &str) -> Self {
        Self {
            tenant,
            kind,
            id: hex(&auth::hash(secret)),
        }
    }

    /// Reads the client's text: the tenant in base64, a dot, the secret.
    fn read(kind: &'static str, text: &str) -> Option<Self> {
        let (tenant, secret) = text.split_once('.')?;
        let tenant = String::from_utf8(URL_SAFE_NO_PAD.decode(tenant).ok()?).ok()?;
        Some(Self::new(tenant.as_str().into(), kind, secret))
    }

    /// The place of the session in the cookie.
    fn of(headers: &HeaderMap) -> Option<Self> {
        let lines = headers.get_all(header::COOKIE).iter();
        let mut cookies = lines
            .filter_map(|line| line.to_str().ok())
            .flat_map(|line| line.split(';'))
            .filter_map(|cookie| cookie.trim().split_once('='));
        let (_, value) = cookies.find(|(name, _)| *name == COOKIE)?;
        Self::read(SESSION, value)
    }
}

/// The signals that end the requests of each session in use, by the hash of its secret.
#[derive(Clone, Default)]
struct OpenSessions(Arc<Mutex<BTreeMap<String, CancellationToken>>>);

impl OpenSessions {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, CancellationToken>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn has(&self, id: &str) -> bool {
        self.lock().contains_key(id)
    }

    fn of(&self, id: &str) -> CancellationToken {
        self.lock().entry(id.to_owned()).or_default().clone()
    }

    fn end(&self, id: &str) {
        let ended = self.lock().remove(id);
        if let Some(ended) = ended {
            ended.cancel();
        }
    }
}

/// Begins a session of a caller that has sent `secret`, and returns its cookie. None if the caller has no
/// key and no token.
pub(crate) async fn begin(
    api: &Api,
    caller: &Caller,
    secret: &str,
) -> Result<Option<HeaderValue>, ApiError> {
    let lifetime = api.app().config().web.session_lifetime;
    let stored = store(api, (caller, secret), (SESSION, lifetime), None).await?;
    let Some((value, expires_at)) = stored else {
        return Ok(None);
    };
    let left = expires_at.duration_since(Timestamp::now());
    let seconds = left.as_secs() + i64::from(left.subsec_nanos() > 0);
    let cookie = format!("{COOKIE}={value}; {ATTRIBUTES}; Max-Age={seconds}");
    let mut cookie = HeaderValue::from_str(&cookie).map_err(|_| ApiError::Panicked)?;
    cookie.set_sensitive(true);
    Ok(Some(cookie))
}

/// Makes a token of the widget for a caller that has sent `secret`, and returns it with its expiry. None
/// if the caller has no key and no token.
pub(crate) async fn make_token(
    api: &Api,
    caller: (&Caller, &str),
    limits: TokenLimits,
) -> Result<Option<(String, Timestamp)>, ApiError> {
    let stored = store(api, caller, (TOKEN, TOKEN_LIFETIME), Some(limits)).await?;
    Ok(stored.map(|(value, expires_at)| (format!("{TOKEN_PREFIX}{value}"), expires_at)))
}

/// Stores a session or a token, and returns the client's text with its expiry.
async fn store(
    api: &Api,
    (caller, secret): (&Caller, &str),
    (kind, lifetime): (&'static str, Duration),
    limits: Option<TokenLimits>,
) -> Result<Option<(String, Timestamp)>, ApiError> {
    let credential = SessionCredential::new(caller, secret, api.app().tokens());
    let Some(credential) = credential else {
        return Ok(None);
    };
    let now = Timestamp::now();
    let latest = now.checked_add(lifetime).unwrap_or(Timestamp::MAX);
    let expires_at = caller.expires().map_or(latest, |own| own.min(latest));
    let stored = StoredSession {
        credential,
        expires_at,
        limits,
    };
    let secret = auth::random().map_err(|_| ApiError::Panicked)?;
    let place = SessionRef::new(caller.tenant.clone(), kind, &secret);
    let object = NewObject {
        kind: kind.to_owned(),
        id: place.id,
        created_at: now,
        json: serde_json::to_string(&stored).map_err(RuntimeError::from)?,
        content: None,
        thread: None,
        is_limited: true,
    };
    sweep(api, &caller.tenant, kind, now).await?;
    api.runtime(&caller.tenant)
        .objects()
        .put(&caller.tenant, object)
        .await?;
    let tenant = URL_SAFE_NO_PAD.encode(caller.tenant.as_str());
    Ok(Some((format!("{tenant}.{secret}"), expires_at)))
}

/// The cookie that removes the session's cookie from the browser.
pub(crate) fn no_cookie() -> Result<HeaderValue, ApiError> {
    let cookie = format!("{COOKIE}=; {ATTRIBUTES}; Max-Age=0");
    HeaderValue::from_str(&cookie).map_err(|_| ApiError::Panicked)
}

/// The caller of a request with the cookie of a session; none if there is no such session.
pub(crate) async fn find(api: &Api, headers: &HeaderMap) -> Result<Option<Caller>, ApiError> {
    match SessionRef::of(headers) {
        Some(place) => find_at(api, place).await,
        None => Ok(None),
    }
}

/// Whether a text has the form of a token of the widget.
pub(crate) fn is_token(text: &str) -> bool {
    text.starts_with(TOKEN_PREFIX)
}

/// The caller with a token of the widget; none if there is no such token.
pub(crate) async fn find_token(api: &Api, text: &str) -> Result<Option<Caller>, ApiError> {
    let place = text.strip_prefix(TOKEN_PREFIX);
    match place.and_then(|text| SessionRef::read(TOKEN, text)) {
        Some(place) => find_at(api, place).await,
        None => Ok(None),
    }
}

/// The caller of a session or a token. One that has expired, or whose key is not configured any more, is
/// deleted.
async fn find_at(api: &Api, place: SessionRef) -> Result<Option<Caller>, ApiError> {
    let objects = api.runtime(&place.tenant).objects();
    let open = api.shared::<OpenSessions>();
    // A guessed secret leaves no trace in memory.
    if !open.has(&place.id)
        && objects
            .get(&place.tenant, place.kind, &place.id)
            .await?
            .is_none()
    {
        return Ok(None);
    }
    // Before the read that counts: a log-out in between ends this request too.
    let ended = open.of(&place.id);
    let found = objects.get(&place.tenant, place.kind, &place.id).await?;
    let stored = found.as_ref().and_then(read);
    let live = stored.filter(|stored| stored.expires_at > Timestamp::now());
    let live = live.and_then(|stored| {
        let (keys, tokens) = (api.app().keys(), api.app().tokens());
        let caller = keys.session_caller(&place.tenant, &stored.credential, tokens)?;
        let caller = caller.in_session(stored.expires_at, ended);
        match &stored.limits {
            Some(limits) => caller.limited(limits),
            None => Some(caller),
        }
    });
    if live.is_none() {
        if found.is_some() {
            forget(api, (&place.tenant, place.kind), &place.id).await?;
        } else {
            api.shared::<OpenSessions>().end(&place.id);
        }
    }
    Ok(live)
}

/// Ends the session of a request's cookie, and the streams that it has opened.
pub(crate) async fn end(api: &Api, headers: &HeaderMap) -> Result<(), ApiError> {
    match SessionRef::of(headers) {
        Some(place) => Ok(forget(api, (&place.tenant, place.kind), &place.id).await?),
        None => Ok(()),
    }
}

async fn forget(api: &Api, (tenant, kind): (&TenantId, &str), id: &str) -> Result<(), StoreError> {
    let objects = api.runtime(tenant).objects();
    objects.delete(tenant, kind, id, None).await?;
    api.shared::<OpenSessions>().end(id);
    Ok(())
}

/// Deletes expired sessions or tokens of a tenant, the oldest first.
async fn sweep(api: &Api, tenant: &TenantId, kind: &str, now: Timestamp) -> Result<(), StoreError> {
    let oldest = ObjectPage {
        limit: SWEPT,
        ..ObjectPage::default()
    };
    for object in api
        .runtime(tenant)
        .objects()
        .list(tenant, kind, oldest)
        .await?
    {
        if read(&object).is_none_or(|stored| stored.expires_at <= now) {
            forget(api, (tenant, kind), &object.id).await?;
        }
    }
    Ok(())
}

fn read(object: &SidecarObject) -> Option<StoredSession> {
    serde_json::from_str(&object.json).ok()
}

/// Counts the attempts to log in, by address.
#[derive(Clone)]
pub(crate) struct LoginAttempts(Arc<SubjectBudgets>);

impl Default for LoginAttempts {
    fn default() -> Self {
        Self(Arc::new(SubjectBudgets::new(ATTEMPTS)))
    }
}

impl LoginAttempts {
    /// Counts an attempt. If there were too many, the error is the time until the next one is allowed.
    pub(crate) fn spend(&self, address: &str) -> Result<(), Duration> {
        self.0.of(address).spend(NonZeroU32::MIN)
    }
}
