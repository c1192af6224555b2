//! The message of a person or program to the agents.

use super::block::{file, text_member};
use crate::json;
use crate::link::{item_file, versions_link};
use crate::requests::capability_card;
use crate::{ids, time};
use interop::parts::ThreadEvent;
use maud::{Markup, html};
use serde_json::Value;
use timeline::{Item, ItemType, Payload, Role};

/// The name of an author without an actor.
const YOU: &str = "You";

/// Whether an item is shown as a message. Answers to the calls of a run are shown by its cards, and
/// references to other items, which hand over to an agent, are not shown.
pub(crate) fn is_shown(item: &Item, has_run: bool) -> bool {
    match item.item_type {
        ItemType::ItemReference => ThreadEvent::of_item(item).is_some(),
        ItemType::ActionResult => !(has_run && interop::run::answers(item)),
        ItemType::Message | ItemType::ActionExecute => true,
    }
}

/// A message as HTML. `thread_key` is the key of its thread.
pub(crate) fn message(item: &Item, thread_key: &str) -> Markup {
    if let Some(event) = ThreadEvent::of_item(item) {
        return thread_event(item, &event);
    }
    match item.item_type {
        ItemType::ActionResult => answer(item),
        ItemType::Message | ItemType::ActionExecute | ItemType::ItemReference => {
            person(item, thread_key)
        }
    }
}

fn person(item: &Item, thread_key: &str) -> Markup {
    let is_waiting = item.run.is_some();
    let id = item.id.as_str();
    let text = item.content.as_ref().map(message_text).unwrap_or_default();
    let is_own = matches!(item.role, Some(Role::User) | None);
    let is_editable = is_own && text.len() <= json::MAX_TEXT;
    html! {
        article class="message user" id=(ids::message(id)) data-state=(if is_waiting { "queued" } else { "done" }) {
            header {
                h2 { (json::visible(&author(item))) }
                span class="quiet meta" {
                    @if is_waiting { span class="words" { "queued" } }
                    @if let Some(channel) = &item.channel { span { (json::visible(channel)) } }
                    (time::instant(item.created_at))
                }
            }
            div class="body" {
                @for (index, part) in parts(item).iter().enumerate() {
                    (part_html(part, &item_file(thread_key, id, index)))
                }
            }
            footer {
                div class="actions" {
                    @if is_editable { details class="edit" {
                        summary { "Edit" }
                        form method="post" action="/ui/edit" {
                            input type="hidden" name="thread" value=(thread_key);
                            input type="hidden" name="item" value=(id);
                            label { span class="hidden" { "New text" }
                                textarea name="text" rows="3" required { (text) }
                            }
                            div class="buttons" {
                                button class="primary" type="submit" name="keep" value="" { "Send again" }
                                button type="submit" name="keep" value="both" { "Keep both (fork)" }
                            }
                        }
                    } }
                    @if interop::revision::message_id(id) != id { (versions_link(thread_key, id)) }
                }
            }
        }
    }
}

/// The text of a message's content, without its files.
pub fn message_text(content: &Payload) -> String {
    let parts: Vec<Value> = content.read().unwrap_or_default();
    let texts = parts.iter().filter_map(|part| text_member(part, "text"));
    texts.collect::<Vec<_>>().join("\n")
}

fn author(item: &Item) -> String {
    let actor = item.metadata.as_ref().and_then(|metadata| {
        let metadata = metadata.value();
        text_member(&metadata, "actor").map(str::to_owned)
    });
    actor.unwrap_or_else(|| {
        match item.role {
            Some(Role::User) | None => YOU,
            Some(Role::Assistant) => "assistant",
            Some(Role::System) => "system",
            Some(Role::Developer) => "developer",
        }
        .to_owned()
    })
}

fn parts(item: &Item) -> Vec<Value> {
    let content = item.content.as_ref();
    content
        .and_then(|content| content.read().ok())
        .unwrap_or_default()
}

/// A part. `source` is the address of its content on this server.
fn part_html(part: &Value, source: &str) -> Markup {
    let kind = text_member(part, "type").unwrap_or_default();
    match kind {
        "input_text" | "output_text" => {
            let text = text_member(part, "text").unwrap_or_default();
            capability_card(text).unwrap_or_else(|| {
                html! {
                    p class="plain" dir="auto" { (json::visible(&json::cut(text, json::MAX_TEXT))) }
                }
            })
        }
        "input_image" | "input_file" => {
            let members = ["image_url", "file_data", "file_url", "url"];
            let url = members.iter().find_map(|name| text_member(part, name));
            let url = url.unwrap_or_default();
            let declared = text_member(part, "media_type").unwrap_or_default();
            let within = url
                .strip_prefix("data:")
                .and_then(|data| data.split([';', ',']).next());
            let media_type = match (declared, within) {
                ("", Some(within)) => within,
                ("", None) if kind == "input_image" => "image/*",
                (declared, _) => declared,
            };
            file((url, source), media_type, text_member(part, "filename"))
        }
        _ => html! {
            details class="data" {
                summary { "Part " code { (json::visible(kind)) } }
                pre tabindex="0" { code { (json::pretty(&part.to_string())) } }
            }
        },
    }
}

/// Answers to pending calls.
fn answer(item: &Item) -> Markup {
    let parts = parts(item);
    html! {
        div class="note answer" id=(ids::message(item.id.as_str())) {
            @for part in &parts {
                p { (answer_words(part)) }
            }
            (time::instant(item.created_at))
        }
    }
}

fn answer_words(part: &Value) -> String {
    let verdict = part.get("approved").and_then(Value::as_bool);
    let words = match verdict {
        Some(true) if part.get("arguments").is_some() => "Allowed with other arguments",
        Some(true) => "Allowed",
        Some(false) => "Denied",
        None if part.get("errorText").is_some() => "A failure was reported",
        None => "A result was sent",
    };
    match text_member(part, "message") {
        Some(message) => format!("{words}: {}", json::visible(message)),
        None => words.to_owned(),
    }
}

/// An event of the thread, such as an actor that joined.
fn thread_event(item: &Item, event: &ThreadEvent) -> Markup {
    let name = event
        .part_type
        .strip_prefix("data-")
        .unwrap_or(&event.part_type);
    html! {
        details class="note data" id=(ids::message(item.id.as_str())) {
            summary { (json::visible(name)) " " (time::instant(item.created_at)) }
            pre tabindex="0" { code { (json::pretty(event.data.text())) } }
        }
    }
}
