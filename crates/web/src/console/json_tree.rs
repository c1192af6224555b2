//! A JSON value as a tree that opens step by step, with a limit of drawn values.

use crate::json;
use crate::words::counted;
use maud::{Markup, html};
use std::ops::Range;
use thread::Json;
use thread::json::{Step, pointer};

/// Maximum number of values on a page.
pub(super) const MAX_VALUES: usize = 500;
/// Maximum number of members of one value.
const MAX_MEMBERS: usize = 200;
/// Maximum length of a text within the tree, in bytes.
const MAX_TEXT: usize = 1_000;
/// Maximum length of a text that is shown alone, in bytes.
const MAX_WHOLE_TEXT: usize = 64 << 10;
/// Maximum length of the pointer of a value that has a link or drawn members, in bytes.
const MAX_POINTER: usize = 2_000;
/// Maximum length of a name, in characters.
const MAX_NAME: usize = 200;

/// The address of the page that shows the value at a pointer, from one of its members on.
type TreeLink<'l> = &'l dyn Fn(&str, usize) -> String;

/// A value of the tree.
struct Node<'d> {
    name: String,
    pointer: String,
    value: &'d Json,
    /// Number of its members.
    n_members: usize,
    /// The nodes of those that are drawn.
    drawn: Range<usize>,
}

/// A JSON value as a tree. Of a large one only the upper levels are drawn; links lead to the others.
pub(crate) struct JsonTree<'d> {
    nodes: Vec<Node<'d>>,
    /// Number of members of the first value that are left out at the start.
    from: usize,
}

impl<'d> JsonTree<'d> {
    /// The tree of a value. `at` is its JSON pointer in the document.
    pub(crate) fn of(value: &'d Json, at: &str, from: usize) -> Self {
        let mut nodes = vec![Node::new(String::new(), at.to_owned(), value)];
        let mut index = 0;
        // Level by level, so that all parts of a document are seen.
        while let Some(node) = nodes.get(index) {
            let skipped = if index == 0 { from } else { 0 };
            let is_open = index == 0 || node.has_address();
            let room = if is_open {
                MAX_VALUES.saturating_sub(nodes.len()).min(MAX_MEMBERS)
            } else {
                0
            };
            let members = members(node.value, &node.pointer, skipped, room);
            let start = nodes.len();
            nodes.extend(members);
            let drawn = start..nodes.len();
            if let Some(node) = nodes.get_mut(index) {
                node.drawn = drawn;
            }
            index += 1;
        }
        Self { nodes, from }
    }

    /// The tree as HTML. `link` is the address of the page that shows the value at a pointer, from one of
    /// its members on.
    pub(crate) fn html(&self, link: TreeLink<'_>) -> Markup {
        let Some(root) = self.nodes.first() else {
            return Markup::default();
        };
        html! {
            @if let Some(text) = root.value.as_str() {
                pre tabindex="0" dir="auto" { (json::visible(&json::cut(text, MAX_WHOLE_TEXT))) }
            } @else if root.n_members == 0 {
                p { (scalar(root.value)) }
            } @else {
                @if self.from > 0 && root.has_address() { p { a href=(link(&root.pointer, 0)) { "Back to the beginning" } } }
                (self.members(root, self.from, link))
            }
        }
    }

    fn members(&self, node: &Node<'_>, from: usize, link: TreeLink<'_>) -> Markup {
        let next = from + node.drawn.len();
        html! {
            ul class="json" {
                @for index in node.drawn.clone() {
                    @if let Some(node) = self.nodes.get(index) { li { (self.node(node, link)) } }
                }
                @if next < node.n_members {
                    li {
                        @if node.has_address() { a href=(link(&node.pointer, next)) { (node.n_members - next) " more" } }
                        @else { (node.n_members - next) " more" }
                    }
                }
            }
        }
    }

    fn node(&self, node: &Node<'_>, link: TreeLink<'_>) -> Markup {
        let text = json::line(&node.name, MAX_NAME);
        let name = html! { span class="key" dir="auto" { (text) } };
        let noun = match node.value {
            Json::Array(_) => "element",
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) | Json::Object(_) => {
                "member"
            }
        };
        let size = html! { span class="quiet" { (counted(node.n_members, noun)) } };
        html! {
            @if node.n_members == 0 {
                (name) ": " (scalar(node.value))
                @if node.has_address() && node.value.as_str().is_some_and(|text| text.len() > MAX_TEXT) {
                    " " a href=(link(&node.pointer, 0)) { "the whole text" span class="hidden" { " of " (text) } }
                }
            } @else if !node.has_address() {
                (name) " " (size)
            } @else if node.drawn.is_empty() {
                a href=(link(&node.pointer, 0)) { (name) } " " (size)
            } @else {
                details {
                    summary { (name) " " (size) }
                    (self.members(node, 0, link))
                }
            }
        }
    }
}

impl<'d> Node<'d> {
    fn new(name: String, pointer: String, value: &'d Json) -> Self {
        let n_members = match value {
            Json::Array(items) => items.len(),
            Json::Object(object) => object.len(),
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => 0,
        };
        Self {
            name,
            pointer,
            value,
            n_members,
            drawn: 0..0,
        }
    }

    /// Whether its pointer is short enough for a link.
    fn has_address(&self) -> bool {
        self.pointer.len() <= MAX_POINTER
    }
}

/// The members of a value, from one on.
fn members<'d>(value: &'d Json, at: &str, from: usize, max: usize) -> Vec<Node<'d>> {
    let node = |name: String, step: Step<'_>, value: &'d Json| {
        Node::new(name, format!("{at}{}", pointer([step])), value)
    };
    match value {
        Json::Array(items) => {
            let items = items.iter().enumerate().skip(from).take(max);
            items
                .map(|(index, item)| node(index.to_string(), Step::Index(index), item))
                .collect()
        }
        Json::Object(object) => {
            let members = object.iter().skip(from).take(max);
            members
                .map(|(key, value)| node(key.to_owned(), Step::Key(key), value))
                .collect()
        }
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => Vec::new(),
    }
}

/// A value without members.
fn scalar(value: &Json) -> Markup {
    let (kind, text) = match value {
        Json::String(text) => {
            let shown = json::visible(&json::cut(text, MAX_TEXT)).into_owned();
            ("s", format!("\"{shown}\""))
        }
        Json::Number(number) => ("n", number.as_str().to_owned()),
        Json::Null | Json::Bool(_) => ("k", value.to_text()),
        Json::Array(_) | Json::Object(_) => ("", value.to_text()),
    };
    html! { span class={ "value " (kind) } dir="auto" { (text) } }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(value: &Json, at: &str, from: usize) -> String {
        let link = |pointer: &str, from: usize| format!("?at={pointer}&from={from}");
        JsonTree::of(value, at, from).html(&link).into_string()
    }

    #[test]
    fn a_value_is_drawn_with_its_members() {
        let value = Json::parse(r#"{"a":[1.50,null,{"b":"x"}],"c":{},"d":"<i>\u202e"}"#).unwrap();
        let html = drawn(&value, "", 0);
        for part in [
            "1.50",
            "null",
            "3 elements",
            "&lt;i&gt;⟨U+202E⟩",
            ">c</span>: ",
        ] {
            assert!(html.contains(part), "{part}: {html}");
        }
        assert_eq!(html.matches("<details>").count(), 2);
    }

    #[test]
    fn a_large_value_is_drawn_in_part_with_links_to_the_rest() {
        let turn = Json::object([("text", Json::from("x".repeat(2_000)))]);
        let turns: Json = std::iter::repeat_n(turn, 1_000).collect();
        let value = Json::object([("turns", turns)]);
        let html = drawn(&value, "", 0);
        assert_eq!(html.matches("<li>").count(), 1 + MAX_MEMBERS * 2 + 1);
        assert!(html.contains("?at=/turns&amp;from=200") && html.contains("800 more"));
        assert!(html.contains("?at=/turns/0/text&amp;from=0"));
        assert!(html.len() < 300_000, "{}", html.len());
        let turns = value.pointer("/turns").unwrap();
        let html = drawn(turns, "/turns", 900);
        assert!(html.contains(">999</span>") && !html.contains(" more<"));
    }

    #[test]
    fn a_long_key_is_cut_and_has_no_link() {
        let key = "k".repeat(1 << 20);
        let inner = Json::object([("inside", Json::from(1_u64))]);
        let text = Json::from("x".repeat(2 * MAX_TEXT));
        let value: Json = [
            Json::object([(key.as_str(), inner)]),
            Json::object([(key.as_str(), text)]),
        ]
        .into_iter()
        .collect();
        let html = drawn(&value, "", 0);
        assert!(html.len() < 5_000, "{}", html.len());
        assert!(
            html.contains("k…</span> <span class=\"quiet\">1 member<"),
            "{html}"
        );
        assert!(!html.contains("inside") && !html.contains("<a "), "{html}");
    }

    #[test]
    fn a_text_is_shown_alone() {
        let html = drawn(&Json::from("a\nb"), "/a", 0);
        assert_eq!(html, "<pre tabindex=\"0\" dir=\"auto\">a\nb</pre>");
    }
}
