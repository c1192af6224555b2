//! Rules for the text of source files.

use super::arrows::{DATABASE, PURE};
use crate::sources::{Source, code, lines_with, production};

/// The most lines a production file may have, its tests not counted.
const LONGEST: usize = 600;

/// Work that was put off, and tests that do not run.
const UNFINISHED: [&str; 5] = [
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("todo", "!"),
    concat!("unimplemented", "!"),
    concat!("#[", "ignore"),
];

/// Tests in JavaScript that do not run.
const UNFINISHED_JS: [&str; 4] = [
    concat!(".", "skip("),
    concat!(".", "only("),
    concat!(".", "todo("),
    concat!("skip", ":"),
];

/// Names of I/O, clocks and randomness.
const IMPURE: [&str; 6] = [
    "std::fs",
    "std::net",
    "tokio",
    "SystemTime",
    "Instant::now",
    "time::Instant",
];

const PRINTS: [&str; 4] = ["println!", "print!", "eprintln!", "eprint!"];

/// Hosts that serve packages; where a machine fetches them from is its own affair.
const REGISTRIES: [&str; 5] = [
    concat!("np", "mjs.", "org"),
    concat!("yarn", "pkg.", "com"),
    concat!("py", "pi.", "org"),
    concat!("python", "hosted.", "org"),
    concat!("cra", "tes.", "io"),
];

pub(super) fn judge(source: &Source) -> Vec<String> {
    let mut findings = Vec::new();
    let mut find =
        |line: usize, what: String| findings.push(format!("{}:{line}: {what}", source.path));
    if !source.path.ends_with("Cargo.lock") {
        for host in REGISTRIES {
            for line in lines_with(&source.text, host) {
                find(line, "names the host of a package registry".into());
            }
        }
    }
    if source.is("mjs") || source.is("js") {
        for word in UNFINISHED_JS {
            for line in lines_with(&source.text, word) {
                find(line, format!("`{word}`: a test that does not run"));
            }
        }
    }
    if source.is("rs") {
        rust(source, &mut find);
    }
    findings
}

fn rust(source: &Source, find: &mut impl FnMut(usize, String)) {
    if source.path.ends_with("/mod.rs") {
        find(
            1,
            "name the file after its module, beside the folder".into(),
        );
    }
    for word in UNFINISHED {
        for line in lines_with(&source.text, word) {
            find(line, format!("`{word}`: finish it or leave it out"));
        }
    }
    let Some(name) = source.crate_name() else {
        return;
    };
    let code = code(&source.text);
    let (database, owner) = DATABASE;
    if name != owner {
        for line in lines_with(&code, database) {
            find(line, format!("only {owner} names {database}"));
        }
    }
    if source.is_test() {
        return;
    }
    let production = production(&code);
    let length = production.lines().count();
    if length > LONGEST {
        let what =
            format!("{length} lines without tests; {LONGEST} is the most, so this is two files");
        find(1, what);
    }
    if name != "cli" {
        forbid(&PRINTS, &code, &production, "only cli prints", find);
    }
    if PURE.contains(&name) {
        let why = format!("{name} is pure: time, ids and bytes come in as arguments");
        forbid(&IMPURE, &code, &production, &why, find);
    }
}

/// Reports words of production code, at their lines in the whole file.
fn forbid(
    words: &[&str],
    code: &str,
    production: &str,
    why: &str,
    find: &mut impl FnMut(usize, String),
) {
    for word in words {
        // Tests stand at the foot, so the first hits are those of production code.
        let n_hits = lines_with(production, word).len();
        for line in lines_with(code, word).into_iter().take(n_hits) {
            find(line, format!("`{word}`: {why}"));
        }
    }
}

/// The lines of the workspace's `clippy.toml` that a crate's own lacks, which takes its place.
pub(super) fn lost_lints(sources: &[Source]) -> Vec<String> {
    let (shared, own): (Vec<&Source>, Vec<&Source>) = sources
        .iter()
        .filter(|it| it.path == "clippy.toml" || it.path.ends_with("/clippy.toml"))
        .partition(|it| it.path == "clippy.toml");
    let wanted = shared.iter().flat_map(|it| it.text.lines());
    let lost = wanted.flat_map(|line| {
        let lacking = own
            .iter()
            .filter(move |it| it.text.lines().all(|kept| kept != line));
        lacking.map(move |it| format!("{}: lacks the workspace's {line:?}", it.path))
    });
    lost.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<String> {
        judge(&Source {
            path: path.into(),
            text: text.into(),
        })
    }

    #[test]
    fn a_clean_file_has_no_findings() {
        let text = "//! Reads tokio's words, and println! too.\nfn a() { let s = \"std::fs\"; }\n";
        assert_eq!(
            found("crates/thread/src/lib.rs", text),
            Vec::<String>::new()
        );
    }

    #[test]
    fn a_pure_crate_touches_nothing_outside_its_tests() {
        let text = "use std::fs;\n#[cfg(test)]\nmod tests {\n    use std::fs;\n}\n";
        let what = "crates/timeline/src/a.rs:1: `std::fs`: timeline is pure: time, ids and bytes come in as arguments";
        assert_eq!(found("crates/timeline/src/a.rs", text), [what]);
        assert_eq!(found("crates/server/src/a.rs", text), Vec::<String>::new());
        assert_eq!(
            found("crates/timeline/tests/laws.rs", text),
            Vec::<String>::new()
        );
    }

    #[test]
    fn only_cli_prints() {
        let text = "fn a() {\n    println!(\"x\");\n}\n";
        assert_eq!(
            found("crates/upp/src/a.rs", text),
            ["crates/upp/src/a.rs:2: `println!`: only cli prints"]
        );
        assert_eq!(found("crates/cli/src/a.rs", text), Vec::<String>::new());
    }

    #[test]
    fn only_stores_names_the_database() {
        let text = "use rusqlite::Connection;\n";
        assert_eq!(
            found("crates/cli/tests/a.rs", text),
            ["crates/cli/tests/a.rs:1: only stores names rusqlite"]
        );
        assert_eq!(found("crates/stores/src/a.rs", text), Vec::<String>::new());
    }

    #[test]
    fn unfinished_work_is_refused_wherever_it_stands() {
        for word in UNFINISHED {
            assert_eq!(
                found("benches/src/lib.rs", &format!("// {word}")).len(),
                1,
                "{word}"
            );
        }
        for word in UNFINISHED_JS {
            let line = format!("test{}", word.replace("skip:", "({ skip: true });"));
            assert_eq!(found("tests/js/a.test.mjs", &line).len(), 1, "{word}");
        }
    }

    #[test]
    fn a_long_file_is_two_files_and_tests_do_not_count() {
        let long = "fn a() {}\n".repeat(LONGEST + 1);
        assert_eq!(found("crates/upp/src/a.rs", &long).len(), 1);
        let tests = format!("fn a() {{}}\n#[cfg(test)]\nmod tests {{\n{long}}}\n");
        assert_eq!(found("crates/upp/src/a.rs", &tests), Vec::<String>::new());
    }

    #[test]
    fn modules_are_files_beside_their_folder() {
        assert_eq!(found("crates/upp/src/a/mod.rs", "").len(), 1);
    }

    #[test]
    fn registry_hosts_are_named_nowhere() {
        for host in REGISTRIES {
            assert_eq!(
                found(
                    "docs/a.md",
                    &format!("see https://{}", host.trim_start_matches('/'))
                )
                .len(),
                1,
                "{host}"
            );
        }
    }

    #[test]
    fn a_crates_own_lints_have_all_of_the_workspaces() {
        let source = |path: &str, text: &str| Source {
            path: path.into(),
            text: text.into(),
        };
        let shared = source("clippy.toml", "a = true\nb = true\n");
        let whole = source("crates/one/clippy.toml", "a = true\nb = true\nc = true\n");
        let lacking = source("crates/two/clippy.toml", "b = true\n");
        let lost = lost_lints(&[shared, whole, lacking]);
        assert_eq!(
            lost,
            ["crates/two/clippy.toml: lacks the workspace's \"a = true\""]
        );
    }
}
