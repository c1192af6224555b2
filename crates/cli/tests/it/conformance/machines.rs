//! The state machines: the listed moves are legal, and no others.

use super::cases::{Block, Case, compare};
use timeline::{
    ContextStatus, Entity, ExecutionStatus, IllegalTransition, ItemStatus, Machine, StepStatus,
    ThreadStatus,
};

pub(crate) fn check(case: &Case) -> Result<(), String> {
    case.blocks
        .iter()
        .try_for_each(|block| match block.info().as_slice() {
            ["transitions", "thread"] => moves(block, Entity::Thread, ThreadStatus::ALL),
            ["transitions", "context"] => moves(block, Entity::Context, ContextStatus::ALL),
            ["transitions", "execution"] => moves(block, Entity::Execution, ExecutionStatus::ALL),
            ["transitions", "step"] => moves(block, Entity::Step, StepStatus::ALL),
            ["transitions", "item"] => moves(block, Entity::Item, ItemStatus::ALL),
            _ => Err(block.unknown()),
        })
}

fn moves<S: Machine>(block: &Block, entity: Entity, all: &[S]) -> Result<(), String> {
    let listed = block.lines();
    let table: Vec<String> = S::TRANSITIONS.iter().map(|(a, b)| name(*a, *b)).collect();
    compare(&listed, &table)?;
    for from in all {
        for to in all {
            let expected = if listed.contains(&name(*from, *to).as_str()) {
                Ok(())
            } else {
                let (from, to) = (from.name(), to.name());
                Err(IllegalTransition { entity, from, to })
            };
            let found = from.transition(*to);
            if found != expected {
                return Err(format!("expected {expected:?}, found {found:?}"));
            }
        }
    }
    Ok(())
}

fn name<S: Machine>(from: S, to: S) -> String {
    format!("{} -> {}", from.name(), to.name())
}
