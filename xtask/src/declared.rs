//! The items, fields, variants and methods that Rust source declares for other files.

use crate::sources::{code, production_lines};

/// A kind of declaration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A struct, enum, union, trait or type alias.
    Type,
    /// Anything else that has a name.
    Other,
}

/// A name that other files can use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Declared {
    /// The line, from 1.
    pub(crate) line: usize,
    pub(crate) kind: Kind,
    pub(crate) name: String,
    /// Whether other crates can use it. Rust's lint `unreachable_pub` holds `pub` to that meaning.
    pub(crate) exported: bool,
}

/// An enum or trait whose members have its visibility.
struct Open {
    depth: usize,
    is_enum: bool,
    exported: bool,
}

/// The declarations of production code as `pub`, `pub(crate)` or `pub(super)`, in order.
pub(crate) fn declared(text: &str) -> Vec<Declared> {
    let code = code(text);
    let mut found = Vec::new();
    let (mut depth, mut open): (usize, Option<Open>) = (0, None);
    for ((line, text), counts) in (1..).zip(code.lines()).zip(production_lines(&code)) {
        if !counts {
            continue;
        }
        let mut add = |kind, name: &str, exported| {
            found.push(Declared {
                line,
                kind,
                name: name.to_owned(),
                exported,
            });
        };
        let trimmed = text.trim_start();
        if let Some((exported, rest)) = visibility(trimmed) {
            if let Some((kind, keyword, name)) = item(rest) {
                add(kind, name, exported);
                let is_enum = keyword == "enum";
                if is_enum || keyword == "trait" {
                    open = Some(Open {
                        depth,
                        is_enum,
                        exported,
                    });
                }
            }
        } else if let Some(it) = &open
            && depth == it.depth + 1
            && let Some(name) = member(trimmed, it.is_enum)
        {
            add(Kind::Other, name, it.exported);
        }
        for byte in text.bytes() {
            match byte {
                b'{' | b'(' | b'[' => depth += 1,
                b'}' | b')' | b']' => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
        if text.contains('}') && open.as_ref().is_some_and(|it| depth <= it.depth) {
            open = None;
        }
    }
    found
}

/// Whether other crates see it, and the text after the visibility.
fn visibility(line: &str) -> Option<(bool, &str)> {
    let rest = line.strip_prefix("pub")?;
    if let Some(rest) = rest.strip_prefix('(') {
        let (_, rest) = rest.split_once(')')?;
        return Some((false, rest.trim_start()));
    }
    Some((true, rest.strip_prefix(' ')?.trim_start()))
}

/// Kind, keyword and name of an item or a field; nothing for an import or a field without a name.
fn item(mut rest: &str) -> Option<(Kind, &str, &str)> {
    loop {
        let word = word(rest)?;
        let after = rest[word.len()..].trim_start();
        match word {
            "struct" | "enum" | "union" | "trait" | "type" => {
                return Some((Kind::Type, word, self::word(after)?));
            }
            "use" => return None,
            // `const fn` is a function, `const NAME` a constant.
            "const" | "static" | "fn" | "mod" | "async" | "unsafe" | "extern" | "mut" => {
                rest = after;
            }
            name if after.starts_with(':') && !after.starts_with("::") => {
                return Some((Kind::Other, "", name));
            }
            name if after.starts_with(['(', '<', ';', '{']) => {
                return Some((Kind::Other, "", name));
            }
            _ => return None,
        }
    }
}

/// The name of a variant or of a trait's method.
fn member(line: &str, is_enum: bool) -> Option<&str> {
    if is_enum {
        let name = word(line)?;
        return name
            .starts_with(|c: char| c.is_ascii_uppercase())
            .then_some(name);
    }
    let rest = line.strip_prefix("async ").unwrap_or(line);
    word(rest.strip_prefix("fn ")?)
}

/// The word that a text begins with.
fn word(text: &str) -> Option<&str> {
    let end = text
        .find(|c: char| !c.is_alphanumeric() && c != '_')
        .unwrap_or(text.len());
    (end > 0).then(|| &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        declared(text).into_iter().map(|it| it.name).collect()
    }

    #[test]
    fn items_fields_variants_and_methods_are_declared() {
        let text = "pub struct A<T> {\n    pub(super) b: T,\n    c: u8,\n}\npub(crate) enum D {\n    #[error(\"x\")]\n    E { f: u8 },\n    G(u8),\n}\npub trait H {\n    fn i(&self) {\n        let J = 1;\n    }\n}\npub const fn k() {}\npub const L: u8 = 1;\npub mod m;\npub use n::O;\nfn p() {}\n";
        let expected = ["A", "b", "D", "E", "G", "H", "i", "k", "L", "m"];
        assert_eq!(names(text), expected);
    }

    #[test]
    fn only_plain_pub_is_exported() {
        let found = declared("pub struct A;\npub(crate) struct B;\npub type C = A;\n");
        let exported: Vec<_> = found.iter().map(|it| (it.kind, it.exported)).collect();
        let expected = [(Kind::Type, true), (Kind::Type, false), (Kind::Type, true)];
        assert_eq!(exported, expected);
    }

    #[test]
    fn tests_and_comments_declare_nothing() {
        let text = "// pub struct A;\n#[cfg(test)]\nmod tests {\n    pub struct B;\n}\n";
        assert_eq!(names(text), Vec::<String>::new());
    }
}
