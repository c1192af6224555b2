//! The modules of a crate and which file uses which.
//!
//! An edge goes from a file to the file that defines what a path in its production code names: in `use`
//! or in the code itself. A re-export is followed to the definition, so the file between is not an edge's
//! end. A declaration `mod child;`, methods, macros and attributes give no edges.

mod paths;

use crate::sources::{Source, code, production};
use paths::{Import, imports, paths};
use std::collections::{BTreeMap, BTreeSet};

/// The longest chain of re-exports that is followed.
const LONGEST_CHAIN: usize = 16;

/// A path of module names from the crate's root.
type ModulePath = Vec<String>;

/// A file as a module.
#[derive(Debug)]
struct Module {
    file: String,
    imports: Vec<Import>,
    /// Paths in the code, `use` left out.
    paths: Vec<Vec<String>>,
}

/// The modules of one crate, one for each file.
#[derive(Debug)]
pub(crate) struct Modules(BTreeMap<ModulePath, Module>);

/// A file and the files it uses.
pub(crate) type Edges = BTreeMap<String, BTreeSet<String>>;

impl Modules {
    /// Reads the production files of `crates/{name}/src`.
    pub(crate) fn of(name: &str, sources: &[Source], tests: &BTreeSet<&str>) -> Self {
        let folder = format!("crates/{name}/src/");
        let mut modules = BTreeMap::new();
        for source in sources {
            let Some(inside) = source.path.strip_prefix(&folder) else {
                continue;
            };
            if !source.is("rs") || tests.contains(source.path.as_str()) {
                continue;
            }
            let code = production(&code(&source.text));
            let module = Module {
                file: source.path.clone(),
                imports: imports(&code),
                paths: paths(&code),
            };
            modules.insert(module_path(inside), module);
        }
        Self(modules)
    }

    /// Which file uses which.
    pub(crate) fn edges(&self) -> Edges {
        let mut edges = Edges::new();
        for (at, module) in &self.0 {
            let mut used = BTreeSet::new();
            for import in module.imports.iter().filter(|it| !it.is_reexport) {
                used.extend(self.definition(at, &import.path, true));
            }
            for path in &module.paths {
                used.extend(self.definition(at, path, false));
            }
            used.remove(&module.file);
            edges.insert(module.file.clone(), used);
        }
        edges
    }

    /// The file that defines what `path` names in the module `at`; nothing for other crates' items.
    fn definition(&self, at: &ModulePath, path: &[String], is_import: bool) -> Option<String> {
        let found = self.resolve(at, path, LONGEST_CHAIN)?;
        // A module that is only brought into scope: the paths that begin with it are the edges.
        let is_module = found.rest.is_empty();
        (!is_module || !is_import).then(|| self.0.get(&found.module).map(|it| it.file.clone()))?
    }

    fn resolve(&self, from: &ModulePath, path: &[String], chain: usize) -> Option<Found> {
        let (mut at, mut rest) = (from.clone(), path);
        let mut rooted = false;
        while let Some((first, after)) = rest.split_first() {
            match first.as_str() {
                "crate" => at.clear(),
                "super" => drop(at.pop()?),
                "self" => {}
                _ => break,
            }
            (rooted, rest) = (true, after);
        }
        loop {
            let Some((first, after)) = rest.split_first() else {
                return rooted.then(|| Found::new(at, rest));
            };
            let mut child = at.clone();
            child.push(first.clone());
            if self.0.contains_key(&child) {
                (at, rest, rooted) = (child, after, true);
                continue;
            }
            let import = self.0.get(&at)?.imports.iter().find(|it| it.name == *first);
            return match import.filter(|it| it.path.first() != Some(first) || at != *from) {
                Some(import) => {
                    let mut path = import.path.clone();
                    path.extend(after.iter().cloned());
                    self.resolve(&at, &path, chain.checked_sub(1)?)
                }
                None => rooted.then(|| Found::new(at, rest)),
            };
        }
    }
}

/// The end of a path: a module, and what is named in it.
struct Found {
    module: ModulePath,
    rest: Vec<String>,
}

impl Found {
    fn new(module: ModulePath, rest: &[String]) -> Self {
        Self {
            module,
            rest: rest.to_vec(),
        }
    }
}

/// `a/b.rs` is `a::b`, `lib.rs` and `main.rs` are the root.
fn module_path(inside: &str) -> ModulePath {
    let path = inside.trim_end_matches(".rs");
    let path = if path == "lib" || path == "main" {
        ""
    } else {
        path
    };
    path.split('/')
        .filter(|it| !it.is_empty())
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edges(files: &[(&str, &str)]) -> Vec<(String, Vec<String>)> {
        let sources: Vec<Source> = files
            .iter()
            .map(|(path, text)| Source {
                path: format!("crates/x/src/{path}"),
                text: (*text).to_owned(),
            })
            .collect();
        let short = |path: &String| path["crates/x/src/".len()..].to_owned();
        let edges = Modules::of("x", &sources, &BTreeSet::new()).edges();
        let edges = edges.iter().filter(|(_, used)| !used.is_empty());
        edges
            .map(|(from, to)| (short(from), to.iter().map(short).collect()))
            .collect()
    }

    fn edge(from: &str, to: &str) -> (String, Vec<String>) {
        (from.to_owned(), vec![to.to_owned()])
    }

    #[test]
    fn a_path_leads_to_the_file_that_defines_its_item() {
        let files = [
            ("lib.rs", "mod a;\nmod b;\npub use b::c::C;\n"),
            ("a.rs", "use crate::C;\nuse std::fs;\n"),
            ("b.rs", "pub mod c;\n"),
            ("b/c.rs", "pub struct C;\nfn f() { super::g() }\n"),
        ];
        assert_eq!(
            edges(&files),
            [edge("a.rs", "b/c.rs"), edge("b/c.rs", "b.rs")]
        );
    }

    #[test]
    fn a_module_in_scope_is_used_where_a_path_begins_with_it() {
        let files = [
            ("a.rs", "use crate::b;\nfn f() { b::c::g() }\n"),
            ("b.rs", "pub mod c;\n"),
            ("b/c.rs", ""),
            ("d.rs", "use crate::b;\n"),
        ];
        assert_eq!(edges(&files), [edge("a.rs", "b/c.rs")]);
    }

    #[test]
    fn grouped_and_renamed_imports_are_followed() {
        let files = [
            ("a.rs", "use super::{b::{self, B as D}, c::*};\n"),
            ("b.rs", "pub struct B;\n"),
            ("c.rs", ""),
        ];
        let expected = (
            "a.rs".to_owned(),
            vec!["b.rs".to_owned(), "c.rs".to_owned()],
        );
        assert_eq!(edges(&files), [expected]);
    }
}
