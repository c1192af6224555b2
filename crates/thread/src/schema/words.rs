//! The descriptions of types and members, one sentence each.

mod actions;
mod document;
mod events;
mod parts;

/// The name of a type, its description, and the descriptions of its members.
type Words = (
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
);

/// The description of a type.
pub(super) fn about(ty: &str) -> Option<&'static str> {
    let (_, about, _) = find(ty)?;
    Some(about)
}

/// The description of a member of a type.
pub(super) fn member(ty: &str, member: &str) -> Option<&'static str> {
    let (_, _, members) = find(ty)?;
    let (_, words) = members.iter().find(|(name, _)| *name == member)?;
    Some(words)
}

/// Every type and member with a description, as `Type` or `Type.member`.
#[cfg(test)]
pub(super) fn places() -> impl Iterator<Item = String> {
    all().flat_map(|(ty, _, members)| {
        let members = members.iter().map(move |(name, _)| format!("{ty}.{name}"));
        std::iter::once((*ty).to_owned()).chain(members)
    })
}

fn find(ty: &str) -> Option<&'static Words> {
    all().find(|(name, ..)| *name == ty)
}

fn all() -> impl Iterator<Item = &'static Words> {
    let tables = [document::WORDS, parts::WORDS, events::WORDS, actions::WORDS];
    tables.into_iter().flatten()
}
