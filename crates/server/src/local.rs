//! The local listener, through which commands on the same machine reach a running server.
//!
//! The server listens on a second port of the loopback address and makes a key at each start. A file in
//! the data directory, readable only by its owner, has the port and the key. The key works only for the
//! local listener, for every tenant.

use crate::app::{LOCAL_SERVER_FILE as FILE, store_file};
use crate::auth::{self, Caller, NoRandomness, tenant_of};
use crate::error::ApiError;
use crate::state::Api;
use http::HeaderMap;
use runtime::StoreError;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use stores::{SqliteStore, private};
use tokio::net::TcpListener;

/// The header that names the tenant of a request to the local listener.
pub const TENANT_HEADER: &str = "loomline-tenant";

/// Why the local listener can't be opened.
#[derive(Debug, thiserror::Error)]
pub enum LocalError {
    /// The socket failed.
    #[error("the listener for commands on this machine failed")]
    Socket(#[source] std::io::Error),
    /// The file can't be written.
    #[error("{path} can't be written")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// No key can be made.
    #[error(transparent)]
    Key(#[from] NoRandomness),
}

/// The address and the key of a running server on this machine.
#[derive(Clone, Debug)]
pub struct LocalServer {
    /// The URL of the local listener.
    pub url: String,
    /// Its key.
    pub key: SecretString,
    /// The URL of its pages.
    pub page: Option<String>,
}

/// The content of the file.
#[derive(Deserialize, Serialize)]
struct Published {
    url: String,
    key: String,
    pid: u32,
    /// The URL of the pages; absent in files of earlier versions.
    #[serde(default)]
    page: Option<String>,
}

impl LocalServer {
    /// The server that serves the store in a data directory now, if it has published an address.
    ///
    /// Deletes the file of a killed server: the store's lock is then free.
    pub fn find(data_dir: &Path) -> Option<Self> {
        let path = data_dir.join(FILE);
        if !path.exists() {
            return None;
        }
        match SqliteStore::lock(&store_file(data_dir)) {
            Err(StoreError::InUse(_)) => {}
            // The lock can't be opened, such as on a read-only medium: nobody serves the store there.
            Err(_) => return None,
            Ok(_free) => {
                let removed = std::fs::remove_file(&path);
                tracing::debug!(?removed, "a server was killed and has left its address");
                return None;
            }
        }
        let text = std::fs::read_to_string(&path).ok()?;
        let Published {
            url,
            key,
            pid: _,
            page,
        } = serde_json::from_str(&text).ok()?;
        Some(Self {
            url,
            page,
            key: key.into(),
        })
    }
}

/// A listener for commands on this machine, and the file with its address. Dropping it deletes the file.
pub struct LocalListener {
    pub(crate) sockets: TcpListener,
    pub(crate) key: LocalKey,
    _file: PublishedFile,
}

impl LocalListener {
    /// Listens on the loopback address, and writes the address, a new key and the URL of the pages to a
    /// data directory. Only the process that serves the store may do so.
    pub fn publish(data_dir: &Path, page: Option<&str>) -> Result<Self, LocalError> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let sockets = crate::connections::listen::listen(address).map_err(LocalError::Socket)?;
        let address = sockets.local_addr().map_err(LocalError::Socket)?;
        let key = auth::new_key()?;
        let published = Published {
            url: format!("http://{address}"),
            key: key.expose_secret().to_owned(),
            pid: std::process::id(),
            page: page.map(str::to_owned),
        };
        let path = data_dir.join(FILE);
        let file = PublishedFile::write(path.clone(), &published)
            .map_err(|source| LocalError::File { path, source })?;
        Ok(Self {
            sockets,
            key: LocalKey(Arc::new(auth::hash(key.expose_secret()))),
            _file: file,
        })
    }
}

/// The file with the address; deleted when dropped.
struct PublishedFile(PathBuf);

impl PublishedFile {
    /// Writes the file anew. It has mode 0600 from the start, and readers see all of it or nothing.
    fn write(path: PathBuf, published: &Published) -> std::io::Result<Self> {
        let draft = path.with_extension("json.part");
        match std::fs::remove_file(&draft) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let mut file = private::options()
            .write(true)
            .create_new(true)
            .open(&draft)?;
        let mut text = serde_json::to_string(published)?;
        text.push('\n');
        file.write_all(text.as_bytes())?;
        std::fs::rename(&draft, &path)?;
        Ok(Self(path))
    }
}

impl Drop for PublishedFile {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_file(&self.0) {
            tracing::debug!(%error, "the address of this server stays published");
        }
    }
}

/// Marks the requests of the local listener; has the hash of its key.
#[derive(Clone)]
pub(crate) struct LocalKey(Arc<[u8; 32]>);

impl LocalKey {
    /// The operator of the tenant that the request names. An error if the key is wrong.
    pub(crate) fn caller(
        &self,
        given: Option<&str>,
        api: &Api,
        headers: &HeaderMap,
    ) -> Result<Caller, ApiError> {
        let given = given.ok_or(ApiError::Unauthorized)?;
        if !auth::is_hash_of(&self.0, given) {
            return Err(ApiError::Unauthorized);
        }
        let named = match headers.get(TENANT_HEADER).map(|value| value.to_str()) {
            None => None,
            Some(Ok(name)) => Some(name),
            Some(Err(_)) => {
                return Err(ApiError::InvalidHeader {
                    name: TENANT_HEADER,
                    expected: "the name of a tenant",
                });
            }
        };
        let keys = api.app().keys();
        let tenant = tenant_of(keys.tenants(), named)?;
        Ok(Caller::operator(&tenant))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_address_counts_while_the_store_is_locked_and_is_deleted_otherwise() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        let lock = SqliteStore::lock(&store_file(path)).unwrap();
        assert!(LocalServer::find(path).is_none());
        let listener = LocalListener::publish(path, Some("http://127.0.0.1:1")).unwrap();
        let found = LocalServer::find(path).unwrap();
        let address = listener.sockets.local_addr().unwrap();
        assert_eq!(found.url, format!("http://{address}"));
        assert_eq!(found.page.as_deref(), Some("http://127.0.0.1:1"));
        assert!(auth::is_hash_of(&listener.key.0, found.key.expose_secret()));
        drop(lock);
        assert!(LocalServer::find(path).is_none());
        assert!(!path.join(FILE).exists());
    }

    #[tokio::test]
    async fn an_address_is_published_anew_for_its_owner_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        // What a server has left that was killed while it wrote, with a mode of its own.
        std::fs::write(path.join("server.json.part"), "half").unwrap();
        let listener = LocalListener::publish(path, Some("http://127.0.0.1:1")).unwrap();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let file = std::fs::metadata(path.join(FILE)).unwrap();
            assert_eq!(file.permissions().mode() & 0o777, 0o600);
        }
        drop(listener);
        assert!(!path.join(FILE).exists() && !path.join("server.json.part").exists());
    }
}
