//! The one way this crate reaches a network.

use crate::error::{Code, Error};
use reqwest::{Client, ClientBuilder};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use std::sync::Arc;
use std::time::Duration;

/// The timeouts of a request. A whole answer has no time limit: a model may write for hours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// For the connection, TLS included.
    pub connect: Duration,
    /// From the request to the response's headers.
    pub headers: Duration,
    /// Between two pieces of the response.
    pub idle: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            headers: Duration::from_mins(2),
            idle: Duration::from_mins(2),
        }
    }
}

/// A builder of HTTP clients with this workspace's TLS: aws-lc-rs and Mozilla's roots. It follows no
/// redirects, so that neither keys nor prompts are sent to another host.
pub fn http_client_builder(provider: &str) -> Result<ClientBuilder, Error> {
    http_client_builder_trusting(provider, &[])
}

/// The builder of [`http_client_builder`], which also trusts the certificates of a PEM text.
///
/// # Errors
///
/// [`Code::NetworkError`] if TLS can't be set up.
pub fn http_client_builder_trusting(provider: &str, roots: &[u8]) -> Result<ClientBuilder, Error> {
    let tls = tls_config_trusting(roots).map_err(|cause| {
        Error::new(Code::NetworkError, provider, "TLS can't be set up").caused_by(cause)
    })?;
    Ok(Client::builder()
        .tls_backend_preconfigured(tls)
        .redirect(reqwest::redirect::Policy::none())
        .user_agent(concat!("loomline/", env!("CARGO_PKG_VERSION"))))
}

/// This workspace's TLS configuration, for other HTTP clients: aws-lc-rs and Mozilla's roots.
pub fn tls_config() -> Result<ClientConfig, rustls::Error> {
    tls_config_trusting(&[])
}

fn tls_config_trusting(more: &[u8]) -> Result<ClientConfig, rustls::Error> {
    let mut roots = RootCertStore::empty();
    // Bundles of systems may contain certificates that can't be used.
    let found = CertificateDer::pem_slice_iter(more).flatten();
    let (n_added, _) = roots.add_parsable_certificates(found);
    if n_added == 0 && !more.is_empty() {
        let text = "the file of further certificates has no certificate in PEM form".to_owned();
        return Err(rustls::Error::General(text));
    }
    roots.add_parsable_certificates(webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter().cloned());
    let crypto = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut tls = ClientConfig::builder_with_provider(crypto)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(tls)
}

/// The error of a request that got no response. It does not have the URL, which may contain a secret.
pub(crate) fn unreached(provider: &str, cause: reqwest::Error) -> Error {
    let cause = cause.without_url();
    let (code, text) = if cause.is_timeout() {
        (Code::Timeout, "the provider was not reached in time")
    } else if cause.is_connect() {
        (Code::NetworkError, "the provider can't be reached")
    } else if cause.is_builder() {
        (Code::InvalidRequest, "the request can't be sent")
    } else {
        (Code::NetworkError, "the connection to the provider broke")
    };
    Error::new(code, provider, text).caused_by(cause)
}
