//! Errors of outbound requests.

use super::address::AddressKind;
use std::time::Duration;

/// Why a request was not sent, or has no response. Messages contain only the host of a URL, because the
/// URL may hold a secret.
#[derive(Debug, thiserror::Error)]
pub enum OutboundError {
    /// The text is no address.
    #[error("this is no address, expected one such as \"https://example.org/hook\"")]
    Address,
    /// The URL has another scheme than `http` or `https`.
    #[error("only https: addresses are allowed")]
    Scheme,
    /// The request would not be encrypted.
    #[error(
        "http: is not encrypted and not allowed here; use https:, or set http = true in [outbound]"
    )]
    Unencrypted,
    /// A redirect leads from HTTPS to HTTP.
    #[error("a redirect leads from https: to http:, and is not followed")]
    Downgraded,
    /// The URL contains a user name or a password.
    #[error("an address has no user and no password; send a header instead")]
    Credentials,
    /// The host is not public.
    #[error("{host} is not allowed: its address is {kind}; [outbound] allow can name it")]
    Refused {
        /// The host; for a name, with its address.
        host: String,
        /// The address's kind.
        kind: AddressKind,
    },
    /// There were more redirects.
    #[error("there are more than {limit} redirects")]
    TooManyRedirects {
        /// How many are followed.
        limit: usize,
    },
    /// A redirect to another origin would send the body there.
    #[error("a redirect would send the body somewhere else, and is not followed")]
    WrongBody,
    /// The answer is too long.
    #[error("the answer is longer than {limit} bytes")]
    TooLarge {
        /// The maximum size.
        limit: usize,
    },
    /// The time limit was exceeded.
    #[error("there is no whole answer after {} s", .after.as_secs_f32())]
    Timeout {
        /// How long was waited.
        after: Duration,
    },
    /// The host can't be reached, or the connection broke.
    #[error("the host can't be reached, or the connection broke")]
    Unreached(#[source] reqwest::Error),
    /// The client can't be made.
    #[error("requests can't be sent at all")]
    SetUp(#[source] reqwest::Error),
    /// TLS can't be set up.
    #[error("requests can't be sent at all")]
    Tls(#[source] upp::Error),
}

/// The resolver's error for a name that is not public.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the address of {host} is {kind}")]
pub(super) struct NotPublic {
    pub(super) host: String,
    pub(super) kind: AddressKind,
}

impl OutboundError {
    /// The error of a request without a response.
    pub(super) fn unreached(error: reqwest::Error) -> Self {
        let mut cause: Option<&dyn std::error::Error> = Some(&error);
        while let Some(inner) = cause {
            if let Some(NotPublic { host, kind }) = inner.downcast_ref() {
                return Self::Refused {
                    host: host.clone(),
                    kind: *kind,
                };
            }
            cause = inner.source();
        }
        Self::Unreached(error.without_url())
    }
}
