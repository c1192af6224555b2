//! Work on threads below the routes: found and authorised, made, deleted, listed, and those that leave no trace.
//!
//! A handler reaches a thread by a [`ThreadRef`] or a [`ThreadKey`], and both exist only through authorisation.

mod delete;
mod ephemeral;
mod keys;
pub(crate) mod listing;
mod made;
mod named;
mod thread_ref;

pub(crate) use delete::{delete_thread, delete_thread_locked, delete_thread_stopping};
pub(crate) use ephemeral::Ephemeral;
pub(crate) use keys::{check_key, check_new_key, key_of};
pub(crate) use made::{answered, id_for};
pub(crate) use named::{NamedThread, ThreadKey};
pub(crate) use thread_ref::ThreadRef;
