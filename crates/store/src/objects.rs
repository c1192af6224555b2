//! Sidecar objects of a tenant: small JSON objects, some with a content.
//!
//! Protocols have data that is not part of any thread, such as assistants and files. Sidecar objects
//! have no log. An object is replaced atomically, and its previous value is not recoverable. An object
//! may belong to one thread, such as notes on its messages. It is deleted with the thread, and can't be
//! stored once the thread is gone.
//!
//! ```
//! use loomline_store::objects::{NewObject, ObjectPage};
//! use loomline_store::{MemoryStore, Store, TenantId};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let store = MemoryStore::new(); // or `stores::SqliteStore`
//! let (tenant, files) = (TenantId::from("acme"), store.objects());
//! let object = NewObject {
//!     kind: "file".to_owned(),
//!     id: "file-1".to_owned(),
//!     created_at: jiff::Timestamp::UNIX_EPOCH,
//!     json: r#"{"filename":"notes.txt"}"#.to_owned(),
//!     content: Some(b"a note".to_vec()),
//!     thread: None,
//!     is_limited: true,
//! };
//! files.put(&tenant, object).await?;
//!
//! let page = ObjectPage { limit: 20, ..ObjectPage::default() };
//! let found = files.list(&tenant, "file", page).await?;
//! assert_eq!(found[0].bytes, Some(6));
//! let content = files.content(&tenant, "file", "file-1").await?;
//! assert_eq!(content.as_deref(), Some(&b"a note"[..]));
//! # Ok(())
//! # }
//! ```

use crate::{StoreError, TenantId};
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use sha2::{Digest, Sha256};
use std::sync::Arc;
use timeline::ThreadId;

/// An object to store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewObject {
    /// The kind: `assistant`, `file`, or another word of the caller.
    pub kind: String,
    /// Its id, unique among the tenant's objects of its kind.
    pub id: String,
    /// The creation time, by which lists are ordered.
    pub created_at: Timestamp,
    /// The object, as JSON text; stored byte for byte and never parsed.
    pub json: String,
    /// Its content, if it has one.
    pub content: Option<Vec<u8>>,
    /// The thread that it belongs to, if any. It is deleted with the thread, in the same transaction.
    pub thread: Option<ThreadId>,
    /// Whether the tenant's limits of stored data apply. They do if a client decides how many there are.
    pub is_limited: bool,
}

/// A stored object, without its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SidecarObject {
    /// Its id.
    pub id: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// The object, as JSON text.
    pub json: String,
    /// How long its content is, if it has one.
    pub bytes: Option<u64>,
    /// The SHA-256 of its content, if it has one.
    pub sha256: Option<[u8; 32]>,
}

/// A page of the objects of one kind, the oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectPage {
    /// Only objects after the one with this id, in the order of the list.
    pub after: Option<String>,
    /// Only objects after this instant and id, in the order of the list. No object with them needs to
    /// exist, so a walk can continue after deletions. Takes precedence over `after`.
    pub beyond: Option<(Timestamp, String)>,
    /// The newest first.
    pub newest_first: bool,
    /// Maximum number of objects.
    pub limit: usize,
}

/// The sidecar objects of tenants: small JSON objects by kind, some with a content.
///
/// Every method is atomic. Equal contents of a tenant's objects are stored once; a content is deleted
/// with the last object that has it, in the same transaction. Objects of other tenants and kinds are
/// invisible. The caller limits the sizes. The suite tests every store against this.
pub trait ObjectTable: Send + Sync {
    /// Stores an object and replaces the one with its kind and id, if any, including its content.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotFound`] if its thread does not exist, or belongs to another tenant.
    fn put<'a>(
        &'a self,
        tenant: &'a TenantId,
        object: NewObject,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Replaces the object with its kind and id if that still equals `before`. Returns whether it did.
    /// An object that was deleted or changed since is left unchanged.
    ///
    /// # Errors
    ///
    /// Those of [`put`](Self::put), if the object would be replaced.
    fn replace<'a>(
        &'a self,
        tenant: &'a TenantId,
        before: &'a SidecarObject,
        object: NewObject,
    ) -> BoxFuture<'a, Result<bool, StoreError>>;

    /// The object; `None` if it does not exist.
    fn get<'a>(
        &'a self,
        tenant: &'a TenantId,
        kind: &'a str,
        id: &'a str,
    ) -> BoxFuture<'a, Result<Option<SidecarObject>, StoreError>>;

    /// The tenant's objects of a kind, by instant and id.
    ///
    /// # Errors
    ///
    /// [`StoreError::NoSuchObject`] if the object in `after` does not exist.
    fn list<'a>(
        &'a self,
        tenant: &'a TenantId,
        kind: &'a str,
        page: ObjectPage,
    ) -> BoxFuture<'a, Result<Vec<SidecarObject>, StoreError>>;

    /// Deletes an object; returns whether it did. With `as_read`, only if the object still equals it; an
    /// object that was replaced since stays.
    fn delete<'a>(
        &'a self,
        tenant: &'a TenantId,
        kind: &'a str,
        id: &'a str,
        as_read: Option<&'a SidecarObject>,
    ) -> BoxFuture<'a, Result<bool, StoreError>>;

    /// The content of an object; `None` if the object has none or does not exist.
    fn content<'a>(
        &'a self,
        tenant: &'a TenantId,
        kind: &'a str,
        id: &'a str,
    ) -> BoxFuture<'a, Result<Option<Arc<[u8]>>, StoreError>>;
}

/// The SHA-256 of a content: what stores know it by.
pub fn sha256(content: &[u8]) -> [u8; 32] {
    Sha256::digest(content).into()
}
