//! Operations on threads for the routes: authorised look-up, creation, deletion, listing, and threads in
//! memory only.
//!
//! A handler gets a thread as a [`ThreadRef`] or a [`ThreadKey`], and both exist only after
//! authorisation.

mod delete;
mod ephemeral;
mod keys;
pub(crate) mod listing;
mod made;
mod named;
mod replacement;
mod thread_ref;
mod unfollowed;

pub(crate) use delete::{delete_thread, delete_thread_locked, delete_thread_stopping};
pub(crate) use ephemeral::Ephemeral;
pub(crate) use keys::{check_key, check_new_key, key_of};
pub(crate) use made::{answered, id_for};
pub(crate) use named::{NamedThread, ThreadKey};
pub(crate) use replacement::{Replacement, stale};
pub(crate) use thread_ref::ThreadRef;
pub(crate) use unfollowed::unfollowed;
