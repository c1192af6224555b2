//! TLS in the server.

use crate::harness::{Served, Server};
use loomline_server::{LocalListener, ServeError, Sockets, TlsError, config::TlsConfig};
use rcgen::{CertifiedKey, KeyPair, generate_simple_self_signed};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

struct Site {
    directory: TempDir,
    served: Served,
}

fn write(directory: &Path, made: &CertifiedKey<KeyPair>) {
    std::fs::write(directory.join("cert.pem"), made.cert.pem()).unwrap();
    std::fs::write(directory.join("key.pem"), made.signing_key.serialize_pem()).unwrap();
}

fn made() -> CertifiedKey<KeyPair> {
    generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap()
}

fn files(directory: &Path) -> TlsConfig {
    TlsConfig {
        cert: directory.join("cert.pem"),
        key: directory.join("key.pem"),
    }
}

fn bind(server: &Server, directory: &Path) -> Result<Sockets, ServeError> {
    let mut config = server.app.config().clone();
    config.server.tls = Some(files(directory));
    Sockets::bind(&config, SocketAddr::from(([127, 0, 0, 1], 0)))
}

impl Site {
    async fn new(made: &CertifiedKey<KeyPair>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        write(directory.path(), made);
        let rig = Server::new("").await;
        let sockets = bind(&rig, directory.path()).unwrap();
        let served = Served::on(rig.app.clone(), sockets);
        Self { directory, served }
    }

    async fn connect(
        &self,
        trusted: &CertificateDer<'static>,
        protocols: &[&str],
    ) -> std::io::Result<TlsStream<TcpStream>> {
        let mut roots = RootCertStore::empty();
        roots.add(trusted.clone()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = protocols
            .iter()
            .map(|name| name.as_bytes().into())
            .collect();
        let socket = TcpStream::connect(self.served.addr).await?;
        let name = ServerName::try_from("localhost").unwrap();
        TlsConnector::from(Arc::new(config))
            .connect(name, socket)
            .await
    }

    async fn health(&self, trusted: &CertificateDer<'static>) -> std::io::Result<String> {
        let mut stream = self.connect(trusted, &["http/1.1"]).await?;
        stream
            .write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
            .await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        Ok(answer)
    }
}

#[tokio::test]
async fn whoever_trusts_the_certificate_is_answered_over_tls() {
    let made = made();
    let site = Site::new(&made).await;
    let answer = site.health(made.cert.der()).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let stream = site
        .connect(made.cert.der(), &["h2", "http/1.1"])
        .await
        .unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(b"h2".as_slice()));
    let stranger = generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    assert!(site.health(stranger.cert.der()).await.is_err());
    site.served.stop().await;
}

#[tokio::test]
async fn plain_text_on_a_tls_port_is_not_answered() {
    let site = Site::new(&made()).await;
    let mut socket = TcpStream::connect(site.served.addr).await.unwrap();
    socket
        .write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
        .await
        .unwrap();
    let mut answer = Vec::new();
    // The system may also cut the connection; either way nothing of HTTP comes back.
    let _ = socket.read_to_end(&mut answer).await;
    assert!(!answer.starts_with(b"HTTP/"), "{answer:?}");
}

#[tokio::test]
async fn clients_that_say_nothing_hold_up_nobody() {
    let made = made();
    let site = Site::new(&made).await;
    let mut silent = Vec::new();
    for _ in 0..50 {
        silent.push(TcpStream::connect(site.served.addr).await.unwrap());
    }
    let answer = site.health(made.cert.der()).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[tokio::test]
async fn a_new_certificate_is_taken_up_and_a_broken_one_is_not() {
    let [first, second] = [made(), made()];
    let site = Site::new(&first).await;
    let open = site.connect(first.cert.der(), &["http/1.1"]).await.unwrap();

    std::fs::write(site.directory.path().join("cert.pem"), "nothing").unwrap();
    looks_again().await;
    assert!(site.health(first.cert.der()).await.is_ok());

    write(site.directory.path(), &second);
    looks_again().await;
    assert!(site.health(second.cert.der()).await.is_ok());
    assert!(site.health(first.cert.der()).await.is_err());
    drop(open);
}

/// Lets the time pass after which the server looks at its files.
async fn looks_again() {
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(11)).await;
    tokio::time::resume();
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_certificate_that_can_not_be_used_is_told_before_anything_is_served() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let server = Server::new("").await;
    let refused = async |expected: &str| {
        let Err(ServeError::Tls(error)) = bind(&server, path) else {
            panic!("{expected}");
        };
        let text = error.to_string();
        assert!(text.contains(expected), "{text}");
        error
    };
    refused("cert.pem can't be read").await;
    write(path, &made());
    std::fs::write(path.join("key.pem"), "").unwrap();
    refused("key.pem has no private key in PEM form").await;
    std::fs::write(path.join("key.pem"), made().signing_key.serialize_pem()).unwrap();
    let error = refused("can't be used").await;
    assert!(matches!(error, TlsError::Unusable { .. }));
}

#[tokio::test]
async fn commands_on_this_machine_need_no_tls() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), &made());
    let rig = Server::new("").await;
    let local = LocalListener::publish(directory.path(), Some("https://localhost")).unwrap();
    let sockets = bind(&rig, directory.path()).unwrap().with_local(local);
    let _served = Served::on(rig.app.clone(), sockets);
    let file = std::fs::read_to_string(directory.path().join("server.json")).unwrap();
    let published: serde_json::Value = serde_json::from_str(&file).unwrap();
    let address = published["url"]
        .as_str()
        .unwrap()
        .strip_prefix("http://")
        .unwrap();
    let key = published["key"].as_str().unwrap();
    let mut socket = TcpStream::connect(address).await.unwrap();
    let request = format!(
        "GET /api/v1/threads HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {key}\r\nconnection: close\r\n\r\n"
    );
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}
