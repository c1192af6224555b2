//! TLS: certificates from files, reloaded when the files change.

use crate::config::TlsConfig;
use rustls::ServerConfig;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

/// Time between two checks of the files.
const LOOK: Duration = Duration::from_secs(10);

/// Why TLS can't be set up.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file does not contain the expected PEM section.
    #[error("{path} has no {expected} in PEM form")]
    Pem {
        /// The file.
        path: PathBuf,
        /// The expected section.
        expected: &'static str,
        /// The parser's error.
        source: pem::Error,
    },
    /// A file can't be read.
    #[error("{path} can't be read")]
    File {
        /// The file, as an absolute path.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The certificate and the key do not match, or are of an unsupported type.
    #[error("the certificate of {cert} and the key of {key} can't be used")]
    Unusable {
        /// The certificate's file.
        cert: PathBuf,
        /// The key's file.
        key: PathBuf,
        /// Why.
        source: rustls::Error,
    },
    /// The library supports no usable version of TLS.
    #[error("TLS can't be set up")]
    SetUp(#[source] rustls::Error),
}

/// The certificate for new connections.
#[derive(Debug)]
struct Current {
    files: TlsConfig,
    provider: Arc<CryptoProvider>,
    key: RwLock<Arc<CertifiedKey>>,
    /// The modification times of the files when they were last read.
    written: Written,
}

/// The modification times of the two files, if the system has them.
type Written = [Option<SystemTime>; 2];

impl Current {
    fn load(files: TlsConfig, provider: Arc<CryptoProvider>) -> Result<Self, TlsError> {
        // Before they are read: what is written meanwhile is seen at the next look.
        let written = written(&files);
        let key = RwLock::new(load(&files, &provider)?);
        Ok(Self {
            files,
            provider,
            key,
            written,
        })
    }

    /// Reads the files again. If they are not usable, the former certificate remains.
    fn reload(&self) -> Result<(), TlsError> {
        let key = load(&self.files, &self.provider)?;
        *self.key.write().unwrap_or_else(PoisonError::into_inner) = key;
        Ok(())
    }
}

fn written(files: &TlsConfig) -> Written {
    [&files.cert, &files.key].map(|path| path.metadata().and_then(|file| file.modified()).ok())
}

impl ResolvesServerCert for Current {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let key = self.key.read().unwrap_or_else(PoisonError::into_inner);
        Some(Arc::clone(&key))
    }
}

fn load(files: &TlsConfig, provider: &CryptoProvider) -> Result<Arc<CertifiedKey>, TlsError> {
    let without = |path: &Path, expected| {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        move |source| {
            if let pem::Error::Io(source) = source {
                return TlsError::File { path, source };
            }
            TlsError::Pem {
                path,
                expected,
                source,
            }
        }
    };
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(&files.cert)
        .and_then(Iterator::collect)
        .map_err(without(&files.cert, "certificate"))?;
    if chain.is_empty() {
        return Err(without(&files.cert, "certificate")(
            pem::Error::NoItemsFound,
        ));
    }
    let key =
        PrivateKeyDer::from_pem_file(&files.key).map_err(without(&files.key, "private key"))?;
    let unusable = |source| TlsError::Unusable {
        cert: files.cert.clone(),
        key: files.key.clone(),
        source,
    };
    let key = CertifiedKey::from_der(chain, key, provider).map_err(unusable)?;
    Ok(Arc::new(key))
}

/// Checks that the certificate files are usable.
pub(crate) fn check(files: &TlsConfig) -> Result<(), TlsError> {
    load(files, &rustls::crypto::aws_lc_rs::default_provider()).map(|_| ())
}

/// A listener with TLS. If the files change, new connections get the new certificate; open connections
/// continue.
pub(crate) struct TlsListener {
    pub(crate) sockets: TcpListener,
    pub(crate) acceptor: TlsAcceptor,
    /// Reloads certificates until it is dropped.
    pub(crate) watch: JoinSet<()>,
}

impl TlsListener {
    pub(crate) fn new(sockets: TcpListener, files: TlsConfig) -> Result<Self, TlsError> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let current = Arc::new(Current::load(files, Arc::clone(&provider))?);
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(TlsError::SetUp)?
            .with_no_client_auth()
            .with_cert_resolver(Arc::<Current>::clone(&current));
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let mut watch = JoinSet::new();
        watch.spawn(watch_files(current));
        Ok(Self {
            sockets,
            acceptor: TlsAcceptor::from(Arc::new(config)),
            watch,
        })
    }
}

/// Reloads the files when they change.
async fn watch_files(current: Arc<Current>) {
    let mut known = current.written;
    loop {
        tokio::time::sleep(LOOK).await;
        let written = written(&current.files);
        if written == known {
            continue;
        }
        known = written;
        match current.reload() {
            Ok(()) => {
                tracing::info!(cert = %current.files.cert.display(), "the certificate was read again");
            }
            // Perhaps only one of the two files is there yet: the other one is seen when it comes.
            Err(error) => {
                let error = crate::error::render_error(&error);
                tracing::error!(
                    error,
                    "the new certificate can't be used; the former one stays"
                );
            }
        }
    }
}

#[cfg(test)]
mod tests;
