//! The PostgreSQL store keeps every promise of a store, and of a store that several nodes share.
//!
//! `LOOMLINE_POSTGRES` is the URL of a server for these tests, and `LOOMLINE_PGBOUNCER` that of a pooler in front of it, as
//! `scripts/postgres` starts them. Each test has a schema.
#![cfg(feature = "postgres")]
#![allow(
    clippy::disallowed_methods,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests have a server from the environment, and tasks that end with them"
)]

mod connections;
mod lanes;
mod nodes;
mod proxy;
mod report;
mod schema;
mod subject;
#[path = "../operator/suite.rs"]
mod suite;
mod transfer;
mod upkeep;

use subject::Opened;

store::store_suite!(Opened::new().await);

/// Runs the tests of shared stores.
mod shared {
    use super::Opened;

    store::shared_store_suite!(Opened::new().await);
}

/// Runs the tests of the work of an operator.
mod operated {
    use super::Opened;

    crate::suite::operator_suite!(Opened::new().await);
}

/// Runs the suite through a pooler that gives each transaction another connection.
mod pooled {
    use super::Opened;

    store::store_suite!(Opened::pooled().await);

    mod shared {
        use super::Opened;

        store::shared_store_suite!(Opened::pooled().await);
    }

    mod operated {
        use super::Opened;

        crate::suite::operator_suite!(Opened::pooled().await);
    }
}
