//! What a tenant keeps beside its threads: small JSON objects, some with a content.
//!
//! Protocols know things that are no thread and no part of one: assistants, files. They have no
//! log; an object is replaced at once or not at all, and what it replaced is gone. Others do lie beside one
//! thread, as what was noted on its messages does: these go with it, and are not kept where it is gone.
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

/// An object to be kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewObject {
    /// What it is: `assistant`, `file`, or another word of who keeps it.
    pub kind: String,
    /// Its id, unique among the tenant's objects of its kind.
    pub id: String,
    /// When it was made; lists go by it.
    pub created_at: Timestamp,
    /// The object, as JSON text; kept byte for byte and never read.
    pub json: String,
    /// Its content, if it has one.
    pub content: Option<Vec<u8>>,
    /// The thread that it lies beside, if there is one: deleted with it, in the same transaction.
    pub thread: Option<ThreadId>,
}

/// An object as it is kept, without its content.
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
    /// Only objects after this instant and id, in the order of the list, whether or not there is such a
    /// one: where a walk goes on that others may delete from. It goes before `after`.
    pub beyond: Option<(Timestamp, String)>,
    /// The newest first.
    pub newest_first: bool,
    /// At most so many.
    pub limit: usize,
}

/// What a tenant keeps beside its threads: small JSON objects of a kind, some with a content.
///
/// Every method is atomic. A tenant has each content once, however many of its objects have it; it
/// goes with the last of them, in the same transaction. Objects of other tenants and of other
/// kinds are as good as not there. What may be how large is for the caller to say.
/// The suite holds every store to this.
pub trait ObjectTable: Send + Sync {
    /// Keeps an object, in place of the one of its kind and id if there is one. A content that the
    /// new one does not bring is gone.
    ///
    /// # Errors
    ///
    /// [`StoreError::NotFound`] if it lies beside a thread that is not there, or is another tenant's.
    fn put<'a>(
        &'a self,
        tenant: &'a TenantId,
        object: NewObject,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Keeps an object in place of the one of its kind and id, if that is there and still as it was read:
    /// `before`. Says whether it is. What somebody else has deleted or changed meanwhile stays so.
    ///
    /// # Errors
    ///
    /// As of [`put`](Self::put), where it would be kept.
    fn replace<'a>(
        &'a self,
        tenant: &'a TenantId,
        before: &'a SidecarObject,
        object: NewObject,
    ) -> BoxFuture<'a, Result<bool, StoreError>>;

    /// The object; none if it is not there.
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
    /// [`StoreError::NoSuchObject`] if the one that the page goes on from is not there.
    fn list<'a>(
        &'a self,
        tenant: &'a TenantId,
        kind: &'a str,
        page: ObjectPage,
    ) -> BoxFuture<'a, Result<Vec<SidecarObject>, StoreError>>;

    /// Deletes an object; says whether it did. With `as_read` only if the object is still as it was read: what
    /// somebody else has put in its place stays.
    fn delete<'a>(
        &'a self,
        tenant: &'a TenantId,
        kind: &'a str,
        id: &'a str,
        as_read: Option<&'a SidecarObject>,
    ) -> BoxFuture<'a, Result<bool, StoreError>>;

    /// The content of an object; none if it has none or is not there.
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
