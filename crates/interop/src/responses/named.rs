//! The records of the log behind the ids of items.

use crate::ids::{COMPACTION, FUNCTION_CALL, FUNCTION_OUTPUT, IdForm, MESSAGE, REASONING, STEP};
use crate::threads::split_attached;
use timeline::{ItemId, StepId};

/// The prefixes of ids of items beyond the specification, before the ids of their steps.
const EXTENSIONS: [&str; 3] = ["apr_", "evt_", "prt_"];

/// Something in a log that has listed items.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// An item of the log.
    Item(ItemId),
    /// A step.
    Step(StepId),
}

/// The records that may have produced the listed item of this id, the most likely first. If the log
/// has none of them, no item has the id. Ids of other systems may look alike, so there can be
/// several.
pub fn origins(id: &str) -> Vec<Origin> {
    let forms = [
        MESSAGE,
        REASONING,
        FUNCTION_CALL,
        FUNCTION_OUTPUT,
        COMPACTION,
        STEP,
    ];
    let step = EXTENSIONS
        .iter()
        .find_map(|prefix| Some(format!("{}{}", STEP.prefix(), id.strip_prefix(prefix)?)));
    let spelled = step.as_deref().unwrap_or(id);
    let form = forms
        .into_iter()
        .find(|form| spelled.starts_with(form.prefix()));
    let mut origins = Vec::new();
    if let Some(form) = form {
        for parent in parents(form, spelled) {
            // What an agent has said belongs to a step, what was said to it to an item.
            origins.push(Origin::Step(parent.as_str().into()));
            // What was said beside answers is the n-th of their item.
            if form != FUNCTION_CALL {
                origins.push(Origin::Item(parent.as_str().into()));
            }
        }
        origins.push(Origin::Item(form.read(spelled).as_ref().into()));
    }
    let as_it_is = Origin::Item(id.into());
    if !origins.contains(&as_it_is) {
        origins.push(as_it_is);
    }
    if let Some((answers, _)) = split_attached(id) {
        origins.push(Origin::Item(answers.into()));
    }
    origins
}

/// The possible parents of the item of this id, if it is the n-th child of one.
fn parents(form: IdForm, id: &str) -> Vec<String> {
    let Some((parent, _)) = id.rsplit_once('_') else {
        return Vec::new();
    };
    let Some(bare) = parent.strip_prefix(form.prefix()) else {
        return Vec::new();
    };
    let read = form.read(parent).into_owned();
    // An id from outside stands behind the prefix as it is, or has one of its own that looks the same.
    let is_ours = read != parent;
    let mut parents = vec![read];
    if !is_ours {
        parents.push(bare.to_owned());
    }
    parents
}

#[cfg(test)]
mod tests {
    use super::super::extension;
    use super::super::output::child;
    use super::*;

    const OURS: &str = "0190a3c4-5b6d-7e8f-9a0b-1c2d3e4f5061";

    #[test]
    fn the_id_of_an_item_names_what_has_it_wherever_its_id_comes_from() {
        for own in [OURS, "from-outside", "msg_1", "rs_a_b", "fco_", "a:1"] {
            let item = Origin::Item(own.into());
            let step = Origin::Step(own.into());
            for form in [
                MESSAGE,
                REASONING,
                FUNCTION_CALL,
                FUNCTION_OUTPUT,
                COMPACTION,
            ] {
                let id = form.write(own);
                assert!(origins(&id).contains(&item), "{id}");
            }
            for form in [MESSAGE, REASONING, FUNCTION_CALL, FUNCTION_OUTPUT] {
                let id = child(form, own, 3);
                assert!(origins(&id).contains(&step), "{id}");
            }
            for form in [MESSAGE, REASONING, FUNCTION_OUTPUT, COMPACTION] {
                let id = child(form, own, "h0");
                assert!(origins(&id).contains(&item), "{id}");
            }
            for prefix in ["apr", "evt", "prt"] {
                let id = extension::id(prefix, own, 1);
                assert!(origins(&id).contains(&step), "{id}");
            }
            let id = MESSAGE.write(&format!("{own}:2"));
            assert!(origins(&id).contains(&item), "{id}");
        }
    }

    #[test]
    fn the_likeliest_comes_first_and_few_are_looked_for() {
        let call = child(FUNCTION_CALL, OURS, 0);
        assert_eq!(origins(&call).first(), Some(&Origin::Step(OURS.into())));
        let message = MESSAGE.write(OURS);
        assert_eq!(origins(&message).first(), Some(&Origin::Item(OURS.into())));
        assert_eq!(origins("x"), [Origin::Item("x".into())]);
    }
}
