//! TLS in the server: certificates from files, taken up again when they change.

use crate::config::TlsConfig;
use crate::serve::{ServeError, send_at_once};
use axum::serve::Listener;
use rustls::ServerConfig;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// How long a client may take for its part of the handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// How many handshakes may go on at once; each has a socket, of which a process often has 1,024. One
/// more ends the oldest, so that whoever is silent keeps nobody out.
const MAX_HANDSHAKES: usize = 512;
/// How often the files are looked at.
const LOOK: Duration = Duration::from_secs(10);

/// Why there can be no TLS.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file has not what it should have.
    #[error("{path} has no {expected} in PEM form")]
    Pem {
        /// The file.
        path: PathBuf,
        /// What was looked for.
        expected: &'static str,
        /// What the reader says.
        source: pem::Error,
    },
    /// The certificate and the key don't go together, or are of a kind nobody uses.
    #[error("the certificate of {cert} and the key of {key} can't be used")]
    Unusable {
        /// The certificate's file.
        cert: PathBuf,
        /// The key's file.
        key: PathBuf,
        /// Why.
        source: rustls::Error,
    },
    /// No version of TLS that the library offers can be had.
    #[error("TLS can't be set up")]
    SetUp(#[source] rustls::Error),
}

/// The certificate that is shown to whoever connects now.
#[derive(Debug)]
struct Current {
    files: TlsConfig,
    provider: Arc<CryptoProvider>,
    key: RwLock<Arc<CertifiedKey>>,
    /// When the files were written that were read first.
    written: Written,
}

/// When each of the two files was last written, as far as the system tells.
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

    /// Reads the files again. When they can't be used the former certificate stays.
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
        let path = path.to_owned();
        move |source| TlsError::Pem {
            path,
            expected,
            source,
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

/// Whether a certificate can be shown.
pub(crate) fn check(files: &TlsConfig) -> Result<(), TlsError> {
    load(files, &rustls::crypto::aws_lc_rs::default_provider()).map(|_| ())
}

/// What listens: sockets, and the handshake before anything is read.
///
/// Handshakes go on beside each other, so that a client that is slow, or says nothing, holds up
/// nobody. One that fails is logged and forgotten. Where the files change, who connects after that
/// is shown the new certificate; connections that are open go on.
pub(crate) struct TlsListener {
    addr: SocketAddr,
    done: mpsc::Receiver<(TlsStream<TcpStream>, SocketAddr)>,
    _tasks: JoinSet<()>,
}

impl TlsListener {
    pub(crate) fn new(sockets: TcpListener, files: TlsConfig) -> Result<Self, ServeError> {
        Self::with_limit(sockets, files, MAX_HANDSHAKES)
    }

    /// The same, with so many handshakes at once.
    fn with_limit(
        sockets: TcpListener,
        files: TlsConfig,
        max_handshakes: usize,
    ) -> Result<Self, ServeError> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let current = Arc::new(Current::load(files, Arc::clone(&provider))?);
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(TlsError::SetUp)?
            .with_no_client_auth()
            .with_cert_resolver(Arc::<Current>::clone(&current));
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let addr = sockets.local_addr()?;
        let (ready, done) = mpsc::channel(1);
        let mut tasks = JoinSet::new();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        tasks.spawn(accept(sockets, acceptor, ready, max_handshakes));
        tasks.spawn(watch(current));
        Ok(Self {
            addr,
            done,
            _tasks: tasks,
        })
    }
}

impl Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        match self.done.recv().await {
            Some(connection) => connection,
            // Nobody comes any more: the one who accepts has ended, which it does only with us.
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.addr)
    }
}

async fn accept(
    mut sockets: TcpListener,
    acceptor: TlsAcceptor,
    ready: mpsc::Sender<(TlsStream<TcpStream>, SocketAddr)>,
    max_handshakes: usize,
) {
    let mut handshakes = JoinSet::new();
    // The oldest first.
    let mut going: VecDeque<AbortHandle> = VecDeque::new();
    loop {
        // Also waits where the system has no more sockets to give.
        let (socket, peer) = Listener::accept(&mut sockets).await;
        while handshakes.try_join_next().is_some() {}
        if going.len() >= max_handshakes {
            going.retain(|handshake| !handshake.is_finished());
        }
        if going.len() >= max_handshakes
            && let Some(oldest) = going.pop_front()
        {
            tracing::debug!(max_handshakes, "the oldest TLS handshake makes room");
            oldest.abort();
        }
        let (acceptor, ready) = (acceptor.clone(), ready.clone());
        going.push_back(handshakes.spawn(async move {
            send_at_once(&socket);
            match timeout(HANDSHAKE, acceptor.accept(socket)).await {
                // Nobody receives it only when the server stops.
                Ok(Ok(stream)) => drop(ready.send((stream, peer)).await),
                Ok(Err(error)) => tracing::debug!(%peer, %error, "a TLS handshake failed"),
                Err(_) => tracing::debug!(%peer, "a TLS handshake took too long"),
            }
        }));
    }
}

/// Takes up files that were written anew.
async fn watch(current: Arc<Current>) {
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
                let error = crate::error::told(&error);
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
