//! A conversation as plain text.

use crate::parts::{TextPart, ToolPart, is_prompt};
use timeline::{Entry, Item, ItemType, Payload, Reaction, Role, Transcript};

/// The conversation as text: one paragraph per entry, after the author's name. Tool calls are
/// described and files are named. Reasoning is left out.
pub fn to_text(transcript: &Transcript) -> String {
    let mut text = String::new();
    for entry in &transcript.entries {
        let (author, text_of_entry) = match entry {
            Entry::Item(item) => match item_text(item) {
                Some(authored) => authored,
                None => continue,
            },
            Entry::Reaction(reaction) => ("assistant", reaction_text(reaction)),
        };
        if text_of_entry.is_empty() {
            continue;
        }
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(author);
        text.push_str(": ");
        text.push_str(&text_of_entry);
        text.push('\n');
    }
    text
}

/// The agents' text in these entries: the texts of the last reaction that has any.
pub fn message_text(entries: &[Entry]) -> String {
    let mut reactions = entries.iter().rev().filter_map(|entry| match entry {
        Entry::Reaction(reaction) => Some(reaction),
        Entry::Item(_) => None,
    });
    let found = reactions.find_map(|reaction| {
        let texts: Vec<String> = parts(reaction).filter_map(text_of).collect();
        (!texts.is_empty()).then(|| texts.join("\n\n"))
    });
    found.unwrap_or_default()
}

fn item_text(item: &Item) -> Option<(&'static str, String)> {
    let who = match item.item_type {
        ItemType::Message | ItemType::ActionExecute => match item.role {
            Some(Role::Assistant) => "assistant",
            Some(Role::System | Role::Developer) => "system",
            Some(Role::User) | None => "user",
        },
        // Answers to calls are told with the calls.
        ItemType::ActionResult | ItemType::ItemReference => return None,
    };
    let content = item.content.as_ref()?.read::<Vec<Payload>>().ok()?;
    Some((who, joined(&content)))
}

fn reaction_text(reaction: &Reaction) -> String {
    let parts: Vec<Payload> = parts(reaction).cloned().collect();
    joined(&parts)
}

fn parts(reaction: &Reaction) -> impl Iterator<Item = &Payload> {
    let parts = reaction.steps.iter().flat_map(|step| &step.parts);
    parts.map(|part| &part.part).filter(|part| !is_prompt(part))
}

fn joined(parts: &[Payload]) -> String {
    let lines = parts.iter().filter_map(|part| {
        text_of(part)
            .or_else(|| ToolPart::read(part).map(|tool| call(&tool)))
            .or_else(|| file(part))
    });
    lines.collect::<Vec<_>>().join("\n\n")
}

/// The text of a part, if it is one.
fn text_of(part: &Payload) -> Option<String> {
    let text = part.read::<TextPart>().ok()?;
    let is_text = matches!(
        text.part_type.as_str(),
        "output_text" | "input_text" | "text"
    );
    (is_text && !text.text.is_empty()).then_some(text.text)
}

fn call(tool: &ToolPart) -> String {
    let (name, arguments) = (tool.tool_name(), tool.arguments());
    match tool.result_text() {
        Some(result) => format!("[{name} {arguments} → {result}]"),
        None => format!("[{name} {arguments}]"),
    }
}

fn file(part: &Payload) -> Option<String> {
    let kind = part.str_field("type")?;
    let what = match kind.as_str() {
        "input_image" => "image",
        "input_file" | crate::parts::OUTPUT_FILE => "file",
        _ => return None,
    };
    Some(match part.str_field("filename") {
        Some(name) => format!("[{what} {name}]"),
        None => format!("[{what}]"),
    })
}
