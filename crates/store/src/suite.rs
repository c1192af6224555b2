//! The tests for every store: one test for each guarantee of [`Store`].
//!
//! A store's tests implement [`Subject`] and expand [`store_suite!`](crate::store_suite), which makes
//! one named test of each function of this module.
#![allow(
    clippy::missing_panics_doc,
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    reason = "these functions are the bodies of tests"
)]

mod appends;
mod checkpoints;
mod child_calls;
mod forks;
mod heads;
mod instants;
pub mod kinds;
mod landmarks;
mod layer;
mod nodes;
mod objects;
mod quotas;
mod reads;
pub mod script;
mod search;
mod sidecars;
mod threads;
mod waits;

pub use appends::*;
pub use checkpoints::*;
pub use child_calls::*;
pub use forks::*;
pub use heads::*;
pub use instants::*;
pub use kinds::items_of_every_kind_are_read_back;
pub use landmarks::*;
pub use layer::Layer;
pub use nodes::*;
pub use objects::*;
pub use quotas::*;
pub use reads::*;
pub use script::{Author, script};
pub use search::*;
pub use sidecars::*;
pub use threads::*;
pub use waits::*;

use crate::{Quotas, Store};
use futures_util::future::BoxFuture;
use std::sync::Arc;

/// A fresh, empty store that a test may close and open again.
pub trait Subject: Send {
    /// The store.
    fn store(&self) -> Arc<dyn Store>;

    /// The limits of its tenants.
    fn quotas(&self) -> Quotas;

    /// Closes the store and opens it again with its data. A store without durable data stays open.
    fn reopen(&mut self) -> BoxFuture<'_, ()>;
}

/// Makes the tests for stores that several nodes share; the expression makes a fresh
/// [`Subject`](crate::suite::Subject) for each.
#[macro_export]
macro_rules! shared_store_suite {
    ($subject:expr) => {
        $crate::store_suite! { @each $subject;
            a_living_nodes_threads_are_not_due
            a_dead_nodes_threads_are_due
            a_node_that_leaves_makes_its_threads_due_at_once
            an_offered_thread_is_due_at_once
            a_thread_at_rest_is_not_due
            a_node_that_joins_again_replaces_the_one_before
            due_threads_are_limited
            a_search_for_due_threads_leaves_some_out
        }
    };
}

/// Makes a test of every function of [`suite`](crate::suite); the expression makes a fresh
/// [`Subject`](crate::suite::Subject) for each.
#[macro_export]
macro_rules! store_suite {
    ($subject:expr) => {
        $crate::store_suite! { @each $subject;
            append_is_all_or_nothing
            append_at_a_stale_tail_is_refused
            an_append_at_another_epoch_is_refused
            an_append_lands_only_while_other_threads_are_unmoved
            a_guard_of_a_deleted_thread_refuses_the_append
            of_two_appends_that_guard_each_other_one_lands
            a_fenced_writer_is_refused_and_has_written_nothing
            an_item_id_that_is_taken_is_refused
            a_repeated_token_gets_the_first_answer_and_appends_nothing
            a_token_counts_for_its_thread_alone
            a_token_of_a_refused_append_can_be_used_again
            sequence_numbers_have_no_gaps
            concurrent_appends_to_32_threads_all_land
            of_32_appends_at_one_tail_one_lands
            a_thousand_records_land_together
            the_newer_of_two_takeovers_wins
            of_32_takeovers_at_one_tail_one_lands
            an_append_of_another_node_leaves_the_run_to_its_owner
            a_head_restores_the_calls_that_wait
            a_head_restores_how_often_a_step_was_started
            a_head_restores_the_state_after_every_command
            a_head_restores_the_state_after_any_commands
            an_append_to_a_thread_that_is_not_there_is_refused
            unfinished_lists_executing_and_waiting_threads_and_nothing_else
            a_reopened_store_reads_what_it_acknowledged
            a_reopened_store_knows_its_tokens
            a_takeover_after_reopening_voids_the_ones_before
            the_text_of_a_record_is_stored_byte_for_byte
            items_of_every_kind_are_read_back
            reading_pages_through_the_log
            a_page_is_bounded_by_bytes
            facts_leave_out_what_only_shows_and_keep_the_markers
            reading_beyond_the_tail_gives_nothing
            a_landmark_stands_where_it_was_made
            triggers_and_executions_are_found_from_any_position
            an_answer_is_no_trigger
            a_missing_thread_has_no_landmarks
            compactions_are_found_from_the_newest_back
            get_or_create_by_64_tasks_makes_one_thread
            get_or_create_finds_the_thread_again
            a_new_thread_keeps_its_epoch_and_its_token
            the_same_key_in_two_tenants_is_two_threads
            threads_without_a_key_are_each_their_own
            a_thread_id_that_is_taken_is_refused
            find_list_and_delete_never_cross_tenants
            a_list_begins_with_the_last_change
            a_list_is_read_in_pages
            a_list_is_in_the_order_of_changes_not_of_clocks
            the_instant_of_a_threads_last_change_is_that_of_its_last_event
            a_list_can_be_narrowed_to_a_prefix_of_the_key
            a_row_has_the_status_of_its_thread
            a_fork_keeps_its_parent
            a_fork_of_another_tenants_thread_is_refused
            forks_are_listed_in_the_order_they_were_made
            a_fork_has_the_calls_that_its_parent_had_left_open_there
            a_fork_that_is_made_with_content_has_what_that_leaves_open
            a_fork_does_not_wait_for_a_sub_agent_of_its_parent
            delete_removes_everything
            a_deletion_at_a_stale_tail_is_refused
            a_closed_store_answers_closed
            a_checkpoint_is_stored_byte_for_byte
            the_latest_save_replaces_the_one_before
            a_session_without_a_checkpoint_is_empty
            a_forgotten_session_is_gone_and_can_be_saved_again
            sessions_are_listed_sorted_and_apart
            any_session_id_is_stored_unchanged
            concurrent_sessions_do_not_disturb_each_other
            concurrent_saves_of_one_session_leave_one_of_them_whole
            checkpoints_never_cross_tenants
            a_reopened_store_has_its_checkpoints
            checkpoints_and_threads_do_not_disturb_each_other
            a_closed_store_has_no_checkpoints_to_give
            an_object_is_stored_byte_for_byte
            an_object_replaces_the_one_before
            objects_are_listed_in_pages_without_gap_or_repeat
            a_page_after_an_unknown_object_is_refused
            a_walk_goes_on_from_where_an_object_was
            a_deleted_object_is_gone
            an_object_is_replaced_only_as_it_was_read
            an_object_is_deleted_only_as_it_was_read
            a_content_stays_until_the_last_object_that_has_it_goes
            objects_never_cross_tenants
            objects_and_threads_do_not_disturb_each_other
            sidecar_objects_are_deleted_with_their_thread
            a_deleted_thread_takes_no_sidecar_objects
            a_closed_store_has_no_objects_to_give
            texts_are_found_by_their_words
            a_search_never_crosses_tenants
            a_search_can_be_restricted_to_keys
            removed_texts_are_not_found
            a_part_is_found_by_its_last_content
            a_deleted_thread_is_not_found
            a_title_is_found_first
            found_threads_are_paged_without_gap_or_repeat
            odd_queries_are_plain_words
            shared_history_is_found_in_its_own_thread
            lists_and_searches_can_be_filtered
            a_preview_has_the_last_text
            a_reopened_store_finds_its_texts
            usage_counts_threads_bytes_and_files
            a_tenant_has_no_more_threads_than_its_limit
            a_tenant_stores_no_more_bytes_than_its_limit
            a_tenant_has_no_more_files_than_its_limit
            a_thread_waits_from_the_end_of_its_run_to_its_answer
            a_message_that_may_ask_counts_until_it_is_settled
            a_part_of_an_agent_may_ask
            waiting_threads_are_paged_oldest_first
            lists_can_have_waiting_threads_alone
            a_fork_waits_with_what_it_inherits
        }
    };
    (@each $subject:expr; $($name:ident)*) => {
        $(
            #[::tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                $crate::suite::$name($subject).await;
            }
        )*
    };
}
