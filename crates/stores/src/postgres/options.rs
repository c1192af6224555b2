//! How a store connects.

use super::hosts::Hosts;
use crate::durable::OpenMode;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;
use store::{Quotas, StoreError};
use tokio_postgres::Config;
use tokio_postgres_rustls::MakeRustlsConnect;

/// How a [`PostgresStore`](super::PostgresStore) is opened.
#[derive(Clone, Debug)]
pub struct PostgresOptions {
    /// The database: `postgres://USER:PASSWORD@HOST/DATABASE`, with the parameters of libpq. Several hosts are tried in
    /// order, from the last one that answered; only one that can be written to is used.
    pub url: String,
    /// The database for notifications, if `url` leads to a pooler that does not support them.
    pub listen_url: Option<String>,
    /// Whether statements are prepared, and settings of connections changed. It must be false behind a pooler that gives
    /// each transaction another connection.
    pub prepared: bool,
    /// How many connections write. The appends of a thread always use the same one.
    pub lanes: NonZeroUsize,
    /// Maximum number of connections that read.
    pub readers: NonZeroUsize,
    /// Certificates of further authorities for TLS, in PEM form. Those of the public web are always trusted.
    pub authorities: Option<Vec<u8>>,
    /// The limits of tenants.
    pub quotas: Quotas,
    /// How long a node lives without a renewal of its lease. All nodes of a database have the same.
    pub lease: Duration,
    /// How long an append waits for a database that can't be reached, and a read for a connection and for an answer.
    pub patience: Duration,
    /// Whether it can be written. A store that is only read has no lanes, and sends no hints.
    pub mode: OpenMode,
}

impl PostgresOptions {
    /// The default options for this database.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            listen_url: None,
            prepared: true,
            lanes: NonZeroUsize::MIN.saturating_add(1),
            readers: NonZeroUsize::MIN.saturating_add(7),
            authorities: None,
            quotas: Quotas::default(),
            lease: Duration::from_secs(12),
            patience: Duration::from_mins(1),
            mode: OpenMode::default(),
        }
    }
}

/// Why the options can't be used. It does not have the URL, which may contain a password.
#[derive(Debug, thiserror::Error)]
pub(super) enum OptionsFault {
    #[error("the URL of the database is wrong: {0}")]
    Url(#[source] tokio_postgres::Error),
    #[error("the URL of the database has no host, or not one port and one address for each host")]
    Hosts,
    #[error("the certificates have none in PEM form")]
    NoCertificate,
    #[error("TLS can't be set up: {0}")]
    Tls(#[from] rustls::Error),
}

impl From<OptionsFault> for StoreError {
    fn from(fault: OptionsFault) -> Self {
        Self::Failed(Box::new(fault))
    }
}

/// The hosts of a URL. A server that does not answer is left soon.
pub(super) fn hosts(url: &str) -> Result<Hosts, OptionsFault> {
    let mut config: Config = url.parse().map_err(OptionsFault::Url)?;
    let limit = config.get_connect_timeout().copied();
    let limit = limit.unwrap_or(Duration::from_secs(5));
    config.connect_timeout(limit);
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(Duration::from_secs(5));
    }
    config.keepalives_idle(Duration::from_secs(5));
    config.keepalives_interval(Duration::from_secs(2));
    config.keepalives_retries(3);
    if config.get_application_name().is_none() {
        config.application_name("loomline");
    }
    config.target_session_attrs(tokio_postgres::config::TargetSessionAttrs::ReadWrite);
    Hosts::new(&config, limit)
}

/// TLS that trusts the authorities of the public web and these.
pub(super) fn tls(authorities: Option<&[u8]>) -> Result<MakeRustlsConnect, OptionsFault> {
    let mut roots = RootCertStore::empty();
    if let Some(pem) = authorities {
        let (n_added, _) =
            roots.add_parsable_certificates(CertificateDer::pem_slice_iter(pem).flatten());
        if n_added == 0 {
            return Err(OptionsFault::NoCertificate);
        }
    }
    roots.add_parsable_certificates(webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter().cloned());
    let crypto = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(crypto)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}
