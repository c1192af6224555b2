//! Import cycles within a crate: how many files refer to each other in a circle.
//!
//! A file that uses its parent's items is no part of a circle by that: a child belongs to its parent.

use crate::sources::{self, Source};
use std::collections::{BTreeMap, BTreeSet};

/// The most files that a cycle of a crate may have.
const LIMITS: [(&str, usize); 4] = [("runtime", 8), ("server", 32), ("store", 2), ("stores", 5)];

type Graph = BTreeMap<String, BTreeSet<String>>;

/// What is wrong: cycles with too many files.
pub(super) fn judge(sources: &[Source]) -> Vec<String> {
    let mut findings = Vec::new();
    for (name, max) in LIMITS {
        let found = largest(&graph(sources, name));
        if found.len() > max {
            let files = found.join(", ");
            let n = found.len();
            findings.push(format!(
                "crates/{name}: {n} modules import each other in a circle, {max} may: {files}"
            ));
        }
    }
    findings
}

/// Which module of a crate imports which.
fn graph(sources: &[Source], name: &str) -> Graph {
    let folder = format!("crates/{name}/src/");
    let files = sources.iter().filter(|source| !source.is_test());
    let modules: BTreeMap<String, String> = files
        .filter_map(|source| {
            let path = source.path.strip_prefix(&folder)?.strip_suffix(".rs")?;
            let module = if path == "lib" {
                String::new()
            } else {
                path.replace('/', "::")
            };
            Some((module, without_tests(&sources::code(&source.text))))
        })
        .collect();
    let exports: BTreeMap<(String, String), String> = modules
        .iter()
        .flat_map(|(module, code)| exports(&modules, module, code))
        .collect();
    let imports = |(module, code): (&String, &String)| {
        let paths = uses(code).into_iter().map(|(_, path)| path);
        let paths = paths.chain(inline(code));
        let targets = paths.filter_map(|path| target(&modules, &exports, module, &path));
        let others = targets.filter(|to| to != module && !module.starts_with(&format!("{to}::")));
        (module.clone(), others.collect())
    };
    modules
        .iter()
        .filter(|(module, _)| !module.is_empty())
        .map(imports)
        .collect()
}

/// The code before a file's own tests.
fn without_tests(code: &str) -> String {
    let end = code.find("\n#[cfg(test)]\n").unwrap_or(code.len());
    code[..end].to_owned()
}

/// What a module exports of others, under its own name.
fn exports(
    modules: &BTreeMap<String, String>,
    module: &str,
    code: &str,
) -> Vec<((String, String), String)> {
    let public = uses(code).into_iter().filter(|(is_public, _)| *is_public);
    let found = public.filter_map(|(_, path)| {
        let to = target(modules, &BTreeMap::new(), module, &path)?;
        Some(((module.to_owned(), path.last()?.clone()), to))
    });
    found.collect()
}

/// The module that a path leads to: that of the item if it is exported elsewhere.
fn target(
    modules: &BTreeMap<String, String>,
    exports: &BTreeMap<(String, String), String>,
    module: &str,
    path: &[String],
) -> Option<String> {
    let own: Vec<String> = module
        .split("::")
        .filter(|it| !it.is_empty())
        .map(str::to_owned)
        .collect();
    let n_up = path.iter().take_while(|it| *it == "super").count();
    let mut full: Vec<String> = match path.first()?.as_str() {
        "crate" => path[1..].to_vec(),
        "self" => [&own[..], &path[1..]].concat(),
        "super" => [&own[..own.len().checked_sub(n_up)?], &path[n_up..]].concat(),
        _ => [&own[..], path].concat(),
    };
    if !matches!(path[0].as_str(), "crate" | "self" | "super")
        && !modules.contains_key(&full[..=own.len()].join("::"))
    {
        return None;
    }
    let mut rest = Vec::new();
    while !full.is_empty() && !modules.contains_key(&full.join("::")) {
        rest.insert(0, full.pop()?);
    }
    let found = full.join("::");
    let exported = rest
        .first()
        .and_then(|item| exports.get(&(found.clone(), item.clone())));
    exported
        .cloned()
        .or(Some(found))
        .filter(|found| !found.is_empty())
}

/// The paths of all `use` declarations, and whether they are exports.
fn uses(code: &str) -> Vec<(bool, Vec<String>)> {
    let mut found = Vec::new();
    let mut rest = code;
    while let Some(at) = rest.find("use ") {
        let line = rest[..at].rsplit('\n').next().unwrap_or_default().trim();
        let end = rest[at..].find(';').map_or(rest.len(), |end| at + end);
        if line.is_empty() || line.starts_with("pub") {
            let tree: String = rest[at + 4..end]
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" ");
            leaves(&mut Vec::new(), &tree, !line.is_empty(), &mut found);
        }
        rest = &rest[(at + 4).min(rest.len())..];
    }
    found
}

fn leaves(
    before: &mut Vec<String>,
    tree: &str,
    is_public: bool,
    found: &mut Vec<(bool, Vec<String>)>,
) {
    let n_before = before.len();
    let (head, group) = tree
        .split_once('{')
        .map_or((tree, None), |(head, group)| (head, Some(group)));
    let names = head
        .split("::")
        .map(|name| name.split(" as ").next().unwrap_or_default().trim());
    before.extend(names.filter(|name| !name.is_empty()).map(str::to_owned));
    match group.map(|group| group.trim().trim_end_matches('}')) {
        None => found.push((is_public, before.clone())),
        Some(group) => {
            let mut depth = 0_usize;
            let parts = group.split(|it| {
                match it {
                    '{' => depth += 1,
                    '}' => depth = depth.saturating_sub(1),
                    _ => {}
                }
                it == ',' && depth == 0
            });
            for part in parts.map(str::trim).filter(|part| !part.is_empty()) {
                let open = part.matches('{').count();
                let closed = "}".repeat(open.saturating_sub(part.matches('}').count()));
                leaves(before, &format!("{part}{closed}"), is_public, found);
            }
        }
    }
    before.truncate(n_before);
}

/// The paths of expressions and types that begin with `crate` or `super`.
fn inline(code: &str) -> Vec<Vec<String>> {
    let is_path = |it: char| it.is_alphanumeric() || it == '_' || it == ':';
    let words = code.split(|it: char| !is_path(it));
    let paths = words.filter(|word| {
        ["crate::", "super::"].iter().any(|it| word.starts_with(it)) && !word.ends_with("::")
    });
    let names = paths.map(|path| {
        path.split("::")
            .filter(|it| !it.is_empty())
            .map(str::to_owned)
    });
    names.map(Iterator::collect).collect()
}

/// The modules of the largest cycle, sorted; none if there is no cycle.
fn largest(graph: &Graph) -> Vec<String> {
    let reach: BTreeMap<&String, BTreeSet<&String>> = graph
        .keys()
        .map(|from| (from, reached(graph, from)))
        .collect();
    let cycle = |from: &String| -> Vec<String> {
        let both = reach[from]
            .iter()
            .filter(|to| reach.get(**to).is_some_and(|back| back.contains(from)));
        both.map(|to| (*to).clone()).collect()
    };
    graph
        .keys()
        .map(cycle)
        .max_by_key(Vec::len)
        .unwrap_or_default()
}

fn reached<'g>(graph: &'g Graph, from: &'g String) -> BTreeSet<&'g String> {
    let mut seen = BTreeSet::new();
    let mut next = vec![from];
    while let Some(module) = next.pop() {
        for to in graph.get(module).into_iter().flatten() {
            if seen.insert(to) {
                next.push(to);
            }
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> Source {
        Source {
            path: format!("crates/runtime/src/{path}.rs"),
            text: text.to_owned(),
        }
    }

    #[test]
    fn modules_that_import_each_other_are_a_cycle() {
        let sources = [
            file("lib", "mod a;\nmod b;\nmod c;\n"),
            file("a", "use crate::b::{Two, deep::{Three}};\n"),
            file("b", "mod deep;\nfn f() { crate::c::g() }\n"),
            file("b/deep", "use super::Two;\n"),
            file(
                "c",
                "// use crate::b::Two;\nuse std::fmt;\nuse crate::a::One;\n",
            ),
            file("d", "use crate::a::One;\n"),
        ];
        let graph = graph(&sources, "runtime");
        assert_eq!(largest(&graph), ["a", "b", "c"]);
        assert_eq!(
            graph["a"],
            BTreeSet::from(["b".to_owned(), "b::deep".to_owned()])
        );
        assert!(graph["b::deep"].is_empty(), "a child may use its parent");
    }

    #[test]
    fn an_export_leads_to_the_module_that_has_the_item() {
        let sources = [
            file("lib", ""),
            file("a", "pub(crate) use inner::Item;\nmod inner;\n"),
            file("a/inner", "use crate::b::f;\n"),
            file("b", "use crate::a::Item;\n"),
        ];
        let graph = graph(&sources, "runtime");
        assert_eq!(largest(&graph), ["a::inner", "b"]);
    }

    #[test]
    fn a_cycle_with_too_many_modules_is_named() {
        let n = LIMITS[0].1 + 1;
        let ring = (0..n).map(|at| {
            let next = (at + 1) % n;
            file(&format!("m{at}"), &format!("use crate::m{next}::Item;\n"))
        });
        let sources: Vec<Source> = ring.collect();
        let found = judge(&sources);
        assert!(
            found[0].starts_with("crates/runtime: 9 modules import each other"),
            "{found:?}"
        );
        assert_eq!(judge(&sources[1..]), Vec::<String>::new());
    }
}
