//! The tests for the work of an operator on every durable store: one for each guarantee of `DurableStore`.
//!
//! The tests of a store implement [`Operated`] and expand `operator_suite!`.

pub(crate) mod content;
mod erasure;
mod evidence;
mod transfer;
mod upkeep;

pub(crate) use content::{Content, acme};

pub(crate) use erasure::*;
pub(crate) use evidence::*;
pub(crate) use transfer::*;

pub(crate) use upkeep::*;

use futures_util::future::BoxFuture;
use loomline_stores::{DurableStore, TransferError, Transferred};
use std::sync::Arc;

/// A fresh, empty store, and access to its tables that the store does not know of.
pub(crate) trait Operated: Send {
    /// The store.
    fn durable(&self) -> Arc<dyn DurableStore>;

    /// Does a statement on its tables. Returns the number of rows.
    fn execute<'a>(&'a self, sql: &'a str) -> BoxFuture<'a, u64>;

    /// The lines of a tenant.
    fn export<'a>(
        &'a self,
        tenant: &'a str,
    ) -> BoxFuture<'a, Result<(Vec<u8>, Transferred), TransferError>>;

    /// Reads lines into the store.
    fn import<'a>(
        &'a mut self,
        lines: &'a [u8],
    ) -> BoxFuture<'a, Result<Transferred, TransferError>>;
}

/// Makes a test of every function of the suite; the expression makes a fresh [`Operated`] for each.
macro_rules! operator_suite {
    ($subject:expr) => {
        $crate::suite::operator_suite! { @each $subject;
            a_whole_store_has_no_findings
            a_change_of_a_log_is_found_at_its_event
            an_end_that_is_not_that_of_the_log_is_found
            changed_rows_are_found_and_rebuilt
            rebuilding_changes_nothing
            a_changed_content_of_an_object_is_found
            a_wrong_usage_is_found
            poisoned_executions_are_listed
            a_store_counts_its_threads_and_events
            storage_shows_bytes_by_kind_tenant_and_thread
            a_chain_has_every_block_and_ends_at_its_row
            a_changed_block_ends_a_chain
            a_sealed_thread_continues_is_older_differs_or_is_missing
            an_erased_block_keeps_its_digest_and_the_chain_holds
            a_thread_is_written_after_its_removed_messages_were_erased
            a_change_of_an_erased_block_is_found
            an_entry_that_a_fork_shows_is_not_erased
            an_entry_that_a_fork_removed_stays_in_its_parent
            the_summary_of_a_withdrawn_compaction_is_erased
            a_tenants_objects_and_checkpoints_are_erased_with_its_threads
            content_that_stays_is_reported_as_shared
            samples_of_a_thread_are_found_until_it_is_deleted
            a_store_knows_that_it_has_deleted_content
            threads_are_listed_in_the_order_of_their_changes
            an_imported_tenant_is_exported_as_the_same_lines
            a_tenant_without_data_is_not_exported
            a_tenant_that_is_there_already_is_refused
            an_import_with_a_taken_key_is_refused
            a_file_that_is_not_whole_is_refused
            a_thread_that_is_not_what_its_log_says_is_refused
        }
    };
    (@each $subject:expr; $($test:ident)*) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $test() {
            crate::suite::$test($subject).await;
        }
    )*};
}
pub(crate) use operator_suite;
