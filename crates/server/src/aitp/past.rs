//! Checks of a history in a request: an imported document, or the messages before the new one.

use super::gate::{PartyBinding, actor_of, record};
use super::refused::{Refused, Why, check_rights};
use super::started::StartedAitpState;
use interop::aitp::{AitpState, ParticipantChange, Participants};
use jiff::Timestamp;
use runtime::RuntimeError;
use timeline::{Command, ItemType, NewItem, Payload, Role, Trigger};

impl PartyBinding {
    /// Checks an imported history against the key. The key must have the right to speak as every actor
    /// that speaks, joins, leaves or declares something. Every file must have an allowed URL. Requests
    /// and answers are not checked.
    pub(super) fn judge_past(
        &self,
        metadata: Option<Payload>,
        commands: &[(Timestamp, Command)],
    ) -> Result<(), RuntimeError> {
        let mut roster =
            StartedAitpState::new(AitpState::default(), metadata, Timestamp::now())?.participants();
        for (place, (at, command)) in commands.iter().enumerate() {
            let refused = |why: Why| Refused::new(why, place);
            for content in contents(command) {
                self.check_links(Some(content)).map_err(refused)?;
            }
            if let Some(item) = item_of(command) {
                let record = record(&AitpState::default(), item.clone(), *at);
                self.check_past(&roster, item, *at).map_err(refused)?;
                roster.apply(&record);
            }
        }
        Ok(())
    }

    /// Checks a history that is to be appended to a thread in this state. Its messages are checked like
    /// posted ones, and replaced by their stored forms. In agents' output, only the URLs of files are
    /// checked. `json` is the text that the history was read from.
    pub(super) fn judge_appended(
        &self,
        desk: &AitpState,
        commands: &mut [(Timestamp, Command)],
        json: &str,
    ) -> Result<(), RuntimeError> {
        let mut items = Vec::new();
        for (place, (_, command)) in commands.iter_mut().enumerate() {
            for content in contents(command) {
                let checked = self.check_links(Some(content));
                checked.map_err(|why| Refused::new(why, place))?;
            }
            items.extend(item_of_mut(command).cloned());
        }
        if let Err(refused) = self.judge_all(desk, &mut items, Timestamp::now()) {
            let text = items.get(refused.item).and_then(first_text);
            let pointer = text.map_or_else(String::new, |text| pointer_to(json, &text));
            return Err(Refused { pointer, ..refused }.into());
        }
        let said = commands.iter_mut();
        let said = said.filter_map(|(_, command)| item_of_mut(command));
        for (item, judged) in said.zip(items) {
            *item = judged;
        }
        Ok(())
    }

    fn check_past(&self, roster: &Participants, item: &NewItem, at: Timestamp) -> Result<(), Why> {
        if let Some(change) = ParticipantChange::of_item(&item.clone().stored(at)) {
            return check_rights(&self.caller, actor_of(&change));
        }
        if item.item_type != ItemType::Message {
            return Ok(());
        }
        let metadata = item.metadata.as_ref();
        let named = metadata.and_then(|metadata| metadata.str_field("actor"));
        // Who names nobody and speaks as the one who began the thread speaks as that actor.
        let initiator = roster.initiator().filter(|_| item.role == Some(Role::User));
        match named.as_deref().or(initiator) {
            Some(actor) => check_rights(&self.caller, actor),
            None => Ok(()),
        }
    }
}

/// The item in a command.
fn item_of(command: &Command) -> Option<&NewItem> {
    match command {
        Command::Record { item }
        | Command::Enqueue { item, .. }
        | Command::Start {
            trigger: Trigger::New(item),
            ..
        } => Some(item),
        Command::Start {
            trigger: Trigger::Waiting,
            ..
        }
        | Command::Create { .. }
        | Command::Emit { .. }
        | Command::StartTool { .. }
        | Command::Respond { .. }
        | Command::PutPart { .. }
        | Command::AddPart { .. }
        | Command::Note { .. }
        | Command::ResetStep
        | Command::CompleteStep { .. }
        | Command::ImportStep { .. }
        | Command::End { .. }
        | Command::Update { .. }
        | Command::Remove { .. }
        | Command::Compact { .. }
        | Command::Close
        | Command::Resume
        | Command::Park
        | Command::Reopen => None,
    }
}

/// The first text of an item.
fn first_text(item: &NewItem) -> Option<String> {
    let parts: Vec<Payload> = item.content.as_ref()?.read().ok()?;
    parts.iter().find_map(|part| part.str_field("text"))
}

/// The item in a command, to replace it.
fn item_of_mut(command: &mut Command) -> Option<&mut NewItem> {
    if let Command::Record { item }
    | Command::Enqueue { item, .. }
    | Command::Start {
        trigger: Trigger::New(item),
        ..
    } = command
    {
        return Some(item);
    }
    None
}

/// The content in a command: lists of parts, and single parts.
pub(super) fn contents(command: &Command) -> Vec<&Payload> {
    if let Command::Respond { parts, .. } = command {
        return parts.iter().collect();
    }
    if let Command::PutPart { part, .. } | Command::AddPart { part } = command {
        return vec![part];
    }
    let content = item_of(command).and_then(|item| item.content.as_ref());
    content.into_iter().collect()
}

/// The JSON pointer of the first string that equals a text; empty if there is none.
pub(crate) fn pointer_to(json: &str, text: &str) -> String {
    use serde_json::Value;
    let value: Value = serde_json::from_str(json).unwrap_or_default();
    let mut open = vec![(String::new(), &value)];
    while let Some((pointer, value)) = open.pop() {
        match value {
            Value::String(found) if found == text => return pointer,
            Value::Array(values) => {
                let values = values.iter().enumerate().rev();
                open.extend(values.map(|(place, value)| (format!("{pointer}/{place}"), value)));
            }
            Value::Object(members) => {
                let members = members.iter().rev();
                open.extend(members.map(|(name, value)| {
                    let name = name.replace('~', "~0").replace('/', "~1");
                    (format!("{pointer}/{name}"), value)
                }));
            }
            Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    String::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_in_json_is_found_where_it_stands_first() {
        let json = r#"{"a/b": [{"c": "x"}, "y"], "d": "y"}"#;
        assert_eq!(pointer_to(json, "y"), "/a~1b/1");
        assert_eq!(pointer_to(json, "x"), "/a~1b/0/c");
        assert_eq!(pointer_to(json, "z"), "");
        assert_eq!(pointer_to("no json", "z"), "");
    }
}
