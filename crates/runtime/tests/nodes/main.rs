//! Several nodes over one PostgreSQL server, each behind a proxy of its own, with the failures that one process can show.
//!
//! Rows of the failure matrix of nodes over PostgreSQL:
//!
//! | row | failure | test |
//! |---|---|---|
//! | 1 | an owner dies in a model stream or an effect tool | `takeover::an_owner_killed_in_a_stream…`, `takeover::an_effect_of_a_killed_owner…` |
//! | 2 | an owner freezes and wakes | `takeover::a_frozen_owner_that_wakes_writes_nothing` |
//! | 3 | a node is cut from its database | `outage::a_node_without_its_database_is_unready_and_gives_up` |
//! | 4 | a node is cut from its clients | `requests::a_follower_resumes_at_another_node_while_the_owner_works` |
//! | 5 | the database is away for 20 s | `outage::an_outage_of_the_database…`, `outage::a_database_that_hangs…`, `outage::a_read_from_a_database_that_hangs…` |
//! | 6 | a node dies in the outage | `outage::a_node_that_dies_in_an_outage…` |
//! | 7 | a commit loses its answer | `requests::a_request_whose_commit_loses_its_answer…`, and `proxy` of the stores' tests |
//! | 8 | a commit waits for a standby server | `standby::a_commit_without_its_standby_server…` |
//! | 9 | an asynchronous failover loses the end of a log | `standby::an_asynchronous_failover…` |
//! | 10 | two primaries | `standby::of_two_primaries…`; with Patroni: `scripts/soak-nodes` |
//! | 11 | a cancel at another node | `requests::a_cancel_at_another_node…` |
//! | 12 | 100 requests at three nodes | `requests::a_hundred_requests…`, one for each policy |
//! | 13 | a child is answered while its parent falls asleep | `requests::a_child_answered_at_another_node…` |
//! | 14 | a fork and a deletion | `requests::of_a_fork_and_a_deletion…` |
//! | 15 | a key is deleted and made anew | `requests::a_key_made_anew_at_another_node…` |
//! | 16 | hints are lost | `requests::lost_hints…`; doubled and reordered ones: the simulation |
//! | 17 | batches with crossing threads | `lanes::batches_with_crossing_threads_do_not_deadlock` of the stores' tests |
//! | 18 | one bad request of a batch | `lanes::one_bad_request_of_a_batch_is_refused_alone` of the stores' tests |
//! | 19 | a wrong clock | `outage::a_node_with_a_wrong_clock_is_not_ready` |
//! | 20 | no connections, read-only, a full disk | `standby::a_database_that_only_reads…`, `standby::a_server_without_free_connections…`, `standby::a_server_with_a_full_disk…` |
//! | 21 | two versions during an upgrade | `takeover::a_node_that_leaves…`; `nodes::an_upgrade_of_one_server…` of the tests of the command, and `scripts/soak-upgrade` with an older binary; `schema::tables_of_a_newer_program…` of the stores' tests |
//! | 22 | a thread that kills its process | `takeover::a_run_that_kills_its_process…` |
//! | 23 | the database of one tenant is down | `outage::tenants_of_another_database…` |
//!
//! Rows of the failure matrix of engines that are the same:
//!
//! | row of engines | row above, or test |
//! |---|---|
//! | 1, 2, 3, 4 | 1, 1, 2, 3 |
//! | 5, 6 | 5, and `proxy::writes_outlive_the_backends_of_their_connections` of the stores' tests; 9 |
//! | 7, 8 | 16; the suite `pooled` of the stores' tests |
//! | 9, 10 | `stores` and the simulation; 7 |
//! | 11, 12 | 11, 12 |
//! | 13, 14 | 4; the server's tests of slow readers |
//! | 15, 16, 17, 18 | 22, 19, 20, 21 |
//! | 19 | `herd::ten_thousand_due_threads_wait_for_slots` |
//! | 20, 21 | the server's tests of tenants; the tests of the embedded store |

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    clippy::disallowed_methods,
    reason = "a failed expectation is the test's failure; the server comes from the environment"
)]

mod agents;
mod cluster;
mod database;
mod herd;
mod outage;
mod proxy;
mod requests;
mod standby;
mod takeover;
