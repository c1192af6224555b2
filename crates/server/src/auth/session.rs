//! The key or the token behind a session of the web interface.

use super::{
    Caller, Claimed, Credential, Keys, Rights, Scope, TOKEN, ThreadPattern, Tokens, hash_text,
    parse_hash, reached,
};
use jiff::Timestamp;
use runtime::TenantId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// The key or the token of a session, as it is stored. It contains no secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "credential", rename_all = "lowercase")]
pub(crate) enum SessionCredential {
    /// A key of the configuration, which has its rights.
    Key {
        /// Its hash, as the configuration has it.
        hash: String,
    },
    /// A token. Its issuer is not queried again, so the session keeps its claims until it expires.
    Token {
        issuer: String,
        subject: String,
        scopes: BTreeSet<Scope>,
        threads: Option<Vec<String>>,
        actors: Option<BTreeSet<String>>,
        expires: Timestamp,
    },
}

impl SessionCredential {
    /// The credential of a caller that has sent `secret`; none if the caller has no key and no token.
    pub(crate) fn new(caller: &Caller, secret: &str, tokens: Option<&Tokens>) -> Option<Self> {
        match caller.credential {
            Credential::None | Credential::Local => None,
            Credential::Key => Some(Self::Key {
                hash: hash_text(secret),
            }),
            Credential::Token => {
                let Rights {
                    scopes,
                    threads,
                    actors,
                } = &*caller.rights;
                let texts = |patterns: &Vec<ThreadPattern>| {
                    patterns.iter().map(ThreadPattern::text).collect()
                };
                Some(Self::Token {
                    issuer: tokens?.issuer().to_owned(),
                    subject: caller.name.strip_prefix(TOKEN)?.to_owned(),
                    scopes: scopes.clone(),
                    threads: threads.as_ref().map(texts),
                    actors: actors.clone(),
                    expires: caller.expires?,
                })
            }
        }
    }
}

impl Keys {
    /// The caller with this credential, with the rights of the current configuration. None if the key is
    /// not configured any more, or has expired.
    pub(crate) fn session_caller(
        &self,
        tenant: &TenantId,
        credential: &SessionCredential,
        tokens: Option<&Tokens>,
    ) -> Option<Caller> {
        let caller = match credential {
            SessionCredential::Key { hash } => {
                let key = self.known(&parse_hash(hash)?)?;
                key.caller.clone()
            }
            SessionCredential::Token {
                issuer,
                subject,
                scopes,
                threads,
                actors,
                expires,
            } => {
                let tokens = tokens.filter(|tokens| tokens.issuer() == issuer)?;
                let patterns = threads.as_ref().map(|threads| {
                    let patterns = threads.iter().map(|text| ThreadPattern::parse(text));
                    patterns.collect::<Option<Vec<_>>>()
                });
                let threads = match patterns {
                    Some(patterns) => Some(patterns?),
                    None => None,
                };
                let claimed = Claimed {
                    tenant: tenant.as_str().to_owned(),
                    subject: subject.clone(),
                    rights: Rights {
                        scopes: scopes.clone(),
                        threads,
                        actors: actors.clone(),
                    },
                    expires: *expires,
                    budget: tokens.budget(subject),
                };
                self.token_caller(claimed).ok()?
            }
        };
        (caller.tenant == *tenant && !caller.has_expired(Timestamp::now())).then_some(caller)
    }
}

/// The limits of a token of the widget.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TokenLimits {
    /// The beginning of the keys of its threads.
    pub(crate) thread_prefix: String,
    /// The agent that answers its messages.
    pub(crate) agent: String,
    /// The actor in whose name its messages are.
    pub(crate) actor: Option<String>,
    pub(crate) scopes: BTreeSet<Scope>,
    /// Whether its holder may answer calls that wait.
    pub(crate) may_answer: bool,
}

/// How long a session lasts.
#[derive(Clone, Debug)]
pub(super) struct SessionLife {
    expires: Timestamp,
    /// Cancelled when the person logs out.
    ended: CancellationToken,
}

impl Caller {
    /// The caller within a session.
    pub(crate) fn in_session(self, expires: Timestamp, ended: CancellationToken) -> Self {
        Self {
            session: Some(SessionLife { expires, ended }),
            ..self
        }
    }

    /// The caller within the limits of a token. None if the caller itself may do less.
    pub(crate) fn limited(self, limits: &TokenLimits) -> Option<Self> {
        let TokenLimits {
            thread_prefix,
            agent: _,
            actor,
            scopes,
            may_answer: _,
        } = limits;
        let speaks_as = |actor: &String| self.rights.may_speak_as(actor);
        let is_within = self.rights.scopes.is_superset(scopes)
            && self.rights.cover_all(thread_prefix)
            && actor.as_ref().is_none_or(speaks_as);
        let pattern = ThreadPattern::parse(&format!("{thread_prefix}*"))?;
        is_within.then(|| Self {
            rights: Arc::new(Rights {
                scopes: scopes.clone(),
                threads: Some(vec![pattern]),
                actors: Some(actor.iter().cloned().collect()),
            }),
            limits: Some(Arc::new(limits.clone())),
            ..self
        })
    }

    /// The actor in whose name its messages on pages are.
    pub(crate) fn speaks_as(&self) -> Option<&str> {
        self.limits.as_ref()?.actor.as_deref()
    }

    /// The only agent that may answer its messages. None without a token of the widget: any agent may.
    pub(crate) fn only_agent(&self) -> Option<&str> {
        self.limits.as_ref().map(|limits| limits.agent.as_str())
    }

    /// Whether the caller has a session in place of the key.
    pub(crate) fn has_session(&self) -> bool {
        self.session.is_some()
    }

    /// When the key or the token expires.
    pub(crate) fn expires(&self) -> Option<Timestamp> {
        self.expires
    }

    /// Waits until the session is over; for ever without a session.
    pub(crate) async fn session_ended(&self) {
        match &self.session {
            Some(session) => tokio::select! {
                () = session.ended.cancelled() => {}
                () = reached(session.expires) => {}
            },
            None => std::future::pending().await,
        }
    }
}
