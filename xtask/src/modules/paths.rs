//! The paths in Rust code, comments and literals blanked.

/// A name that `use` brings into scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Import {
    /// The name in scope; `*` for all of a module.
    pub(super) name: String,
    pub(super) path: Vec<String>,
    /// Whether it is `pub use`: other files look through it.
    pub(super) is_reexport: bool,
}

/// A token: a word, `::`, or one other character.
fn tokens(code: &str) -> Vec<&str> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut tokens = Vec::new();
    let mut rest = code.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = if is_word(first) {
            rest.find(|c| !is_word(c)).unwrap_or(rest.len())
        } else if rest.starts_with("::") {
            2
        } else {
            first.len_utf8()
        };
        let (token, after) = rest.split_at(length);
        tokens.push(token);
        rest = after.trim_start();
    }
    tokens
}

/// Whether a token is a name or a keyword.
fn is_name(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// Whether `use` is here, and not the `use<'a>` of a return type.
fn is_import(tokens: &[&str], at: usize) -> bool {
    tokens.get(at) == Some(&"use") && tokens.get(at + 1) != Some(&"<")
}

/// Everything that `use` declares, at any depth.
pub(super) fn imports(code: &str) -> Vec<Import> {
    let tokens = tokens(code);
    let mut found = Vec::new();
    for at in 0..tokens.len() {
        if !is_import(&tokens, at) {
            continue;
        }
        let before = at.checked_sub(1).and_then(|at| tokens.get(at));
        let is_reexport = matches!(before, Some(&"pub" | &")"));
        let end = tokens[at..].iter().position(|it| *it == ";");
        let tree = &tokens[at + 1..end.map_or(tokens.len(), |end| at + end)];
        expand(tree, is_reexport, &mut found);
    }
    found
}

/// Adds the imports of one tree. Open groups are a stack, so depth costs nothing.
fn expand(tree: &[&str], is_reexport: bool, found: &mut Vec<Import>) {
    let (mut path, mut groups): (Vec<String>, Vec<usize>) = (Vec::new(), Vec::new());
    let mut alias = None;
    let mut tokens = tree.iter().peekable();
    let mut finish = |path: &mut Vec<String>, alias: &mut Option<String>, keep: usize| {
        if path.len() > keep {
            if path.last().is_some_and(|it| it == "self") {
                path.pop();
            }
            let name = alias.take().or_else(|| path.last().cloned());
            found.extend(name.map(|name| Import {
                name,
                path: path.clone(),
                is_reexport,
            }));
        }
        path.truncate(keep);
    };
    while let Some(token) = tokens.next() {
        let keep = groups.last().copied().unwrap_or(0);
        match *token {
            "::" => {}
            "{" => groups.push(path.len()),
            "," => finish(&mut path, &mut alias, keep),
            "}" => {
                finish(&mut path, &mut alias, keep);
                groups.pop();
                // The group's prefix is no import of its own.
                path.truncate(groups.last().copied().unwrap_or(0));
            }
            "as" => alias = tokens.next().map(|it| (*it).to_owned()),
            name => path.push(name.to_owned()),
        }
    }
    finish(&mut path, &mut alias, 0);
}

/// The paths of more than one name, `use` left out.
pub(super) fn paths(code: &str) -> Vec<Vec<String>> {
    let tokens = tokens(code);
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        if is_import(&tokens, at) {
            at += tokens[at..].iter().take_while(|it| **it != ";").count();
            continue;
        }
        let before = |n| at.checked_sub(n).and_then(|at| tokens.get(at)).copied();
        // In `pub(in crate::a)` the path names a scope; after `::` it is no path of this crate.
        let is_scope = before(1) == Some("in") && before(2) == Some("(");
        if !is_name(token) || is_scope || before(1) == Some("::") {
            at += 1;
            continue;
        }
        let mut path = vec![(*token).to_owned()];
        at += 1;
        while tokens.get(at) == Some(&"::") && tokens.get(at + 1).is_some_and(|it| is_name(it)) {
            path.push(tokens[at + 1].to_owned());
            at += 2;
        }
        if path.len() > 1 {
            found.push(path);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn import(name: &str, path: &str) -> (String, String) {
        (name.to_owned(), path.to_owned())
    }

    #[test]
    fn imports_are_expanded() {
        let code = "use a::{b, c::{self, D as E}, f::*};\npub use g;\n";
        let found = imports(code);
        let pairs: Vec<_> = found
            .iter()
            .map(|it| (it.name.clone(), it.path.join("::")))
            .collect();
        let expected = [
            import("b", "a::b"),
            import("c", "a::c"),
            import("E", "a::c::D"),
            import("*", "a::f::*"),
            import("g", "g"),
        ];
        assert_eq!(pairs, expected);
        assert!(found[4].is_reexport && !found[0].is_reexport);
    }

    #[test]
    fn paths_in_code_are_read_whole() {
        let code = "use a::b;\nfn f(x: crate::c::D) { e::g(); h.i(); pub(in crate::j) }\nfn k() -> impl L + use<'_> { m::n() }\n";
        let found: Vec<String> = paths(code).iter().map(|it| it.join("::")).collect();
        assert_eq!(found, ["crate::c::D", "e::g", "m::n"]);
    }
}
