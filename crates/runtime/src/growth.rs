//! The writes that count against a tenant's storage limit.

use timeline::{Command, ItemType, NewItem, Trigger};

/// Whether events are refused once their tenant has reached its storage limit. The commands that
/// make them decide.
///
/// New messages and the output of running steps are refused. The end of a run, answers that a run
/// waits for, and removals are accepted, because they end runs and free space.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Growth {
    says: bool,
    adds: bool,
    ends: bool,
}

impl Growth {
    /// Counts one more command.
    pub(crate) fn note(&mut self, command: &Command) {
        match command {
            Command::Record { item }
            | Command::Enqueue { item, .. }
            | Command::Start {
                trigger: Trigger::New(item),
                ..
            } => self.note_item(item),
            Command::Emit { .. }
            | Command::StartTool { .. }
            | Command::Respond { .. }
            | Command::PutPart { .. }
            | Command::AddPart { .. }
            | Command::Note { .. }
            | Command::CompleteStep { .. }
            | Command::ImportStep { .. }
            | Command::Compact { .. }
            | Command::Update { .. } => self.adds = true,
            Command::End { .. } | Command::Close => self.ends = true,
            Command::Create { .. }
            | Command::Start { .. }
            | Command::ResetStep
            | Command::Remove { .. }
            | Command::Resume
            | Command::Park
            | Command::Reopen => {}
        }
    }

    fn note_item(&mut self, item: &NewItem) {
        match item.item_type {
            ItemType::Message => self.says = true,
            ItemType::ItemReference => self.adds = true,
            ItemType::ActionExecute | ItemType::ActionResult => {}
        }
    }

    /// Whether the tenant's limit of stored bytes applies. Chunks that were shown before are output
    /// of a running step, also if the step and the run end in the same commit.
    pub(crate) fn is_limited(self, has_chunks: bool) -> bool {
        self.says || (self.adds && (!self.ends || has_chunks))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use timeline::{Ending, Interruption};

    fn is_limited(commands: &[&Command]) -> bool {
        let mut growth = Growth::default();
        for command in commands {
            growth.note(command);
        }
        growth.is_limited(false)
    }

    #[test]
    fn messages_and_steps_are_limited_and_ends_are_not() {
        let say = Command::Record {
            item: NewItem::user("a", serde_json::json!([]).into()),
        };
        let show = Command::Emit { chunks: Vec::new() };
        let why = Interruption::new(Interruption::ERROR, "");
        let end = Command::End {
            ending: Ending::Failed(why),
        };
        assert!(is_limited(&[&say]) && is_limited(&[&show]));
        assert!(!is_limited(&[&show, &end]) && !is_limited(&[&end]));
        // A message that stops a run is a message.
        assert!(is_limited(&[&end, &say]));
        assert!(!is_limited(&[&Command::Close]) && !is_limited(&[]));
        let mut whole = Growth::default();
        whole.note(&show);
        whole.note(&end);
        assert!(whole.is_limited(true));
    }
}
