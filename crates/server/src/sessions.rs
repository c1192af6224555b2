//! The sessions of the web interface: a cookie stands for a key or a token.
//!
//! The browser has a secret, the store its hash. Each request makes the caller anew from the current
//! configuration, so a key that is removed or may do less acts at once.

use crate::auth::{self, Caller, SessionCredential, SubjectBudgets};
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

/// The kind of session objects in the table of sidecar objects.
const KIND: &str = "web-session";
/// The name of the cookie. Browsers accept the prefix only with `Secure`, `Path=/` and no `Domain`.
const COOKIE: &str = "__Host-loomline";
/// The attributes of the cookie.
const ATTRIBUTES: &str = "Path=/; Secure; HttpOnly; SameSite=Strict";
/// Number of the oldest sessions that are looked at when a session begins: expired ones are deleted.
const SWEPT: usize = 100;
/// Maximum number of attempts to log in per minute from one address.
const ATTEMPTS: NonZeroU32 = NonZeroU32::new(20).unwrap();

/// A stored session.
#[derive(Serialize, Deserialize)]
struct StoredSession {
    #[serde(flatten)]
    credential: SessionCredential,
    #[serde(rename = "expiresAt")]
    expires_at: Timestamp,
}

/// The place of a session in the store, from its cookie.
struct SessionPlace {
    tenant: TenantId,
    /// The hash of the secret.
    id: String,
}

impl SessionPlace {
    fn new(tenant: TenantId, secret: &str) -> Self {
        Self {
            tenant,
            id: hex(&auth::hash(secret)),
        }
    }

    /// Reads the cookie: the tenant in base64, a dot, the secret.
    fn of(headers: &HeaderMap) -> Option<Self> {
        let lines = headers.get_all(header::COOKIE).iter();
        let mut cookies = lines
            .filter_map(|line| line.to_str().ok())
            .flat_map(|line| line.split(';'))
            .filter_map(|cookie| cookie.trim().split_once('='));
        let (_, value) = cookies.find(|(name, _)| *name == COOKIE)?;
        let (tenant, secret) = value.split_once('.')?;
        let tenant = String::from_utf8(URL_SAFE_NO_PAD.decode(tenant).ok()?).ok()?;
        Some(Self::new(tenant.as_str().into(), secret))
    }
}

/// What ends the requests of each session in use, by the hash of its secret.
#[derive(Clone, Default)]
struct OpenSessions(Arc<Mutex<BTreeMap<String, CancellationToken>>>);

impl OpenSessions {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, CancellationToken>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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
    let credential = SessionCredential::new(caller, secret, api.app().tokens());
    let Some(credential) = credential else {
        return Ok(None);
    };
    let now = Timestamp::now();
    let latest = now
        .checked_add(api.app().config().web.session_lifetime)
        .unwrap_or(Timestamp::MAX);
    let expires_at = caller.expires().map_or(latest, |own| own.min(latest));
    let stored = StoredSession {
        credential,
        expires_at,
    };
    let secret = auth::random().map_err(|_| ApiError::Panicked)?;
    let place = SessionPlace::new(caller.tenant.clone(), &secret);
    let object = NewObject {
        kind: KIND.to_owned(),
        id: place.id,
        created_at: now,
        json: serde_json::to_string(&stored).map_err(RuntimeError::from)?,
        content: None,
        thread: None,
    };
    sweep(api, &caller.tenant, now).await?;
    api.runtime().objects().put(&caller.tenant, object).await?;
    let tenant = URL_SAFE_NO_PAD.encode(caller.tenant.as_str());
    let seconds = expires_at.duration_since(now).as_secs().max(0);
    let cookie = format!("{COOKIE}={tenant}.{secret}; {ATTRIBUTES}; Max-Age={seconds}");
    let mut cookie = HeaderValue::from_str(&cookie).map_err(|_| ApiError::Panicked)?;
    cookie.set_sensitive(true);
    Ok(Some(cookie))
}

/// The cookie that removes the session's cookie from the browser.
pub(crate) fn no_cookie() -> Result<HeaderValue, ApiError> {
    let cookie = format!("{COOKIE}=; {ATTRIBUTES}; Max-Age=0");
    HeaderValue::from_str(&cookie).map_err(|_| ApiError::Panicked)
}

/// The caller of a request with the cookie of a session; none if there is no such session. A session
/// that has expired, or whose key is not configured any more, is deleted.
pub(crate) async fn find(api: &Api, headers: &HeaderMap) -> Result<Option<Caller>, ApiError> {
    let Some(place) = SessionPlace::of(headers) else {
        return Ok(None);
    };
    // Before the store is read: a log-out in between ends this request too.
    let ended = api.shared::<OpenSessions>().of(&place.id);
    let objects = api.runtime().objects();
    let found = objects.get(&place.tenant, KIND, &place.id).await?;
    let stored = found.as_ref().and_then(read);
    let live = stored.filter(|stored| stored.expires_at > Timestamp::now());
    let live = live.and_then(|stored| {
        let (keys, tokens) = (api.app().keys(), api.app().tokens());
        let caller = keys.session_caller(&place.tenant, &stored.credential, tokens)?;
        Some(caller.in_session(stored.expires_at, ended))
    });
    if live.is_none() {
        if found.is_some() {
            forget(api, &place.tenant, &place.id).await?;
        } else {
            api.shared::<OpenSessions>().end(&place.id);
        }
    }
    Ok(live)
}

/// Ends the session of a request's cookie, and the streams that it has opened.
pub(crate) async fn end(api: &Api, headers: &HeaderMap) -> Result<(), ApiError> {
    match SessionPlace::of(headers) {
        Some(place) => Ok(forget(api, &place.tenant, &place.id).await?),
        None => Ok(()),
    }
}

async fn forget(api: &Api, tenant: &TenantId, id: &str) -> Result<(), StoreError> {
    let objects = api.runtime().objects();
    objects.delete(tenant, KIND, id, None).await?;
    api.shared::<OpenSessions>().end(id);
    Ok(())
}

/// Deletes expired sessions of a tenant, the oldest first.
async fn sweep(api: &Api, tenant: &TenantId, now: Timestamp) -> Result<(), StoreError> {
    let oldest = ObjectPage {
        limit: SWEPT,
        ..ObjectPage::default()
    };
    for object in api.runtime().objects().list(tenant, KIND, oldest).await? {
        if read(&object).is_none_or(|stored| stored.expires_at <= now) {
            forget(api, tenant, &object.id).await?;
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
        self.0.of(address).spend()
    }
}
