//! A check of HTML against the constant set of elements and attributes.

const ELEMENTS: [&str; 29] = [
    "a",
    "blockquote",
    "br",
    "button",
    "code",
    "del",
    "div",
    "em",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "hr",
    "li",
    "ol",
    "p",
    "pre",
    "span",
    "strong",
    "table",
    "tbody",
    "td",
    "th",
    "thead",
    "tr",
    "ul",
    "",
];

const ATTRIBUTES: [&str; 15] = [
    "aria-label",
    "class",
    "data-ask",
    "data-odd",
    "data-src",
    "dir",
    "href",
    "id",
    "rel",
    "role",
    "start",
    "tabindex",
    "target",
    "type",
    "",
];

const CLASSES: [&str; 17] = [
    "b",
    "c",
    "center",
    "esc",
    "host",
    "image",
    "k",
    "left",
    "md",
    "n",
    "raw",
    "right",
    "s",
    "table",
    "tail",
    "language-",
    "",
];

/// Elements that may be within a paragraph.
const INLINE: [&str; 8] = ["a", "br", "button", "code", "del", "em", "span", "strong"];

/// Checks that HTML has known elements and attributes only, and is nested as HTML wants it.
pub(super) fn check(html: &str) {
    let mut open: Vec<&str> = Vec::new();
    for piece in html.split('<').skip(1) {
        let (tag, text) = piece.split_once('>').expect("the end of a tag");
        assert!(!text.contains(['>', '"']), "{text:?} in {html}");
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "{html}");
            continue;
        }
        let (name, attributes) = tag.split_once(' ').unwrap_or((tag, ""));
        assert!(ELEMENTS.contains(&name), "{name} in {html}");
        if open.iter().any(|it| ["p", "a", "button"].contains(it)) {
            assert!(INLINE.contains(&name), "{name} in {html}");
        }
        if open.iter().any(|it| ["a", "button"].contains(it)) {
            assert!(name != "a" && name != "button", "{html}");
        }
        check_attributes(attributes);
        if name != "br" && name != "hr" {
            open.push(name);
        }
    }
    assert_eq!(open, [""; 0], "{html}");
}

fn check_attributes(attributes: &str) {
    let mut rest = attributes;
    while !rest.is_empty() {
        let (name, value) = rest.split_once("=\"").expect("a quote");
        let (value, after) = value.split_once('"').expect("a second quote");
        assert!(ATTRIBUTES.contains(&name), "{name} in {attributes}");
        if name == "class" {
            let known = CLASSES.contains(&value) || value.starts_with("language-");
            assert!(known, "{attributes}");
        }
        if name == "href" || name == "data-src" {
            let scheme = value
                .split(':')
                .next()
                .unwrap_or_default()
                .to_ascii_lowercase();
            assert!(
                ["http", "https", "mailto"].contains(&scheme.as_str()),
                "{attributes}"
            );
        }
        rest = after.trim_start();
    }
}
