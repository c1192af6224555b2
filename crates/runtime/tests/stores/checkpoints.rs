//! A tenant's checkpoints in a store are checkpoints of agents.

use crate::runtime::checkpoint::StoreCheckpoints;
use crate::{Memory, Sqlite};
use agents::checkpoint::CheckpointStore;
use std::sync::Arc;
use store::suite::Subject;

fn of<S: Subject>(subject: S) -> (Arc<dyn CheckpointStore>, S) {
    let checkpoints = StoreCheckpoints::new(subject.store(), "acme".into());
    (Arc::new(checkpoints), subject)
}

mod memory {
    agents::checkpoint_suite!(super::of(super::Memory::default()));
}

mod sqlite {
    agents::checkpoint_suite!(super::of(super::Sqlite::default()));
}
