//! How things are spelled in columns.

use timeline::{ItemType, Payload, Role};

/// JSON as its text.
pub(super) fn text(payload: Option<&Payload>) -> Option<&str> {
    payload.map(Payload::text)
}

/// An item's type as EK §4.3 spells it.
pub(super) fn item_type(item_type: ItemType) -> &'static str {
    item_type.name()
}

/// The item's type of this name.
pub(super) fn item_type_of(name: &str) -> Option<ItemType> {
    let all = [
        ItemType::Message,
        ItemType::ActionExecute,
        ItemType::ActionResult,
        ItemType::ItemReference,
    ];
    all.into_iter().find(|it| item_type(*it) == name)
}

/// A message's role as EK §4.3 spells it.
pub(super) fn role(role: Role) -> &'static str {
    match role {
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::System => "system",
        Role::Developer => "developer",
    }
}
