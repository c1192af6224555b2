//! The codes of names in columns. They are stored: they never change.

use timeline::{ContextStatus, ExecutionStatus, ItemStatus, ItemType, Machine, Role, StepStatus};

/// A status whose code is its place in the order of the specification.
pub(super) trait Coded: Machine {
    const ALL: &'static [Self];
}

impl Coded for ContextStatus {
    const ALL: &'static [Self] = &[Self::Open, Self::Streaming, Self::Closed];
}

impl Coded for ExecutionStatus {
    const ALL: &'static [Self] = &[Self::Executing, Self::Completed, Self::Failed];
}

impl Coded for StepStatus {
    const ALL: &'static [Self] = &[Self::Running, Self::Completed, Self::Failed];
}

impl Coded for ItemStatus {
    const ALL: &'static [Self] = &[Self::Stored, Self::Pending, Self::Completed];
}

const ITEM_TYPES: [ItemType; 4] = [
    ItemType::Message,
    ItemType::ActionExecute,
    ItemType::ActionResult,
    ItemType::ItemReference,
];

const ROLES: [Role; 4] = [Role::User, Role::Assistant, Role::System, Role::Developer];

/// The code of a status.
pub(super) fn code<S: Coded>(status: S) -> i64 {
    place(S::ALL, &status)
}

/// The status with this code.
pub(super) fn status_of<S: Coded>(code: i64) -> Option<S> {
    S::ALL.get(usize::try_from(code).ok()?).copied()
}

/// The code of an item's type.
pub(super) fn item_type(item_type: ItemType) -> i64 {
    place(&ITEM_TYPES, &item_type)
}

/// The item's type with this code.
pub(super) fn item_type_of(code: i64) -> Option<ItemType> {
    ITEM_TYPES.get(usize::try_from(code).ok()?).copied()
}

/// The code of a role.
pub(super) fn role(role: Role) -> i64 {
    place(&ROLES, &role)
}

fn place<T: PartialEq>(all: &[T], one: &T) -> i64 {
    let place = all.iter().position(|it| it == one);
    // Each array has every value: the views of the schema name them.
    place
        .and_then(|place| i64::try_from(place).ok())
        .unwrap_or(-1)
}
