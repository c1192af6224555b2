//! `schema`, and the documents that the documentation shows.

use crate::support::cli::Home;
use interop::archive::{Archive, Format};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use thread::{Json, Limits, Profile, Thread, Version, Violation, validate};

fn docs(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs")
        .join(name)
}

/// The files of a directory, by name.
fn files(directory: &Path) -> BTreeMap<String, String> {
    let entries = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap());
    let read = |path: PathBuf| std::fs::read_to_string(path).unwrap();
    entries
        .map(|entry| (entry.file_name().into_string().unwrap(), read(entry.path())))
        .collect()
}

/// Run with `UPDATE_SCHEMAS=1` to write the files anew.
#[test]
#[expect(clippy::disallowed_methods, reason = "a test's own switch")]
fn the_schemas_equal_the_golden_files() {
    let home = Home::new();
    let directory = home.path("schemas");
    home.ok(&["schema", "--all", "-o", directory.to_str().unwrap()]);
    let written = files(&directory);
    assert_eq!(written.len(), 9);
    let golden = docs("schemas");
    if std::env::var_os("UPDATE_SCHEMAS").is_some() {
        std::fs::create_dir_all(&golden).unwrap();
        for name in files(&golden).keys() {
            std::fs::remove_file(golden.join(name)).unwrap();
        }
        for (name, text) in &written {
            std::fs::write(golden.join(name), text).unwrap();
        }
    }
    assert!(
        files(&golden) == written,
        "the schemas have changed; run the test with UPDATE_SCHEMAS=1 and read the difference"
    );
}

#[test]
fn a_schema_has_the_name_of_its_file() {
    let golden = files(&docs("schemas"));
    assert_eq!(golden.len(), 9);
    for (name, text) in golden {
        let schema: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            schema["$id"],
            format!("https://loomline.dev/schemas/{name}")
        );
    }
}

#[test]
fn each_schema_is_printed_by_name() {
    let home = Home::new();
    let golden = files(&docs("schemas"));
    let names = [
        (vec![], "threadprotocol-0.0.4.json"),
        (vec!["--strict"], "threadprotocol-0.0.4.strict.json"),
        (vec!["0.0.4"], "threadprotocol-0.0.4.json"),
        (vec!["0.0.3"], "threadprotocol-0.0.3.json"),
        (
            vec!["2.0.0", "--strict"],
            "threadprotocol-2.0.0.strict.json",
        ),
        (vec!["1.0.0"], "threadprotocol-1.0.0.json"),
        (vec!["archive"], "loomline-archive-1.json"),
    ];
    for (arguments, name) in names {
        let arguments = [vec!["schema"], arguments].concat();
        assert_eq!(home.ok(&arguments), golden[name], "{arguments:?}");
    }
}

#[test]
fn a_schema_that_there_is_not_and_a_directory_for_one_schema_are_refused() {
    let home = Home::new();
    for arguments in [
        vec!["schema", "0.0.5"],
        vec!["schema", "0.0.3", "-o", "x"],
        vec!["schema", "-o", "x"],
        vec!["schema", "--all"],
        vec!["schema", "--all", "--strict", "-o", "x"],
    ] {
        assert_eq!(home.run(&arguments).code, 2, "{arguments:?}");
    }
}

/// The blocks of the documentation without their comments, by what their section is called.
fn blocks() -> BTreeMap<String, String> {
    let text = std::fs::read_to_string(docs("reference/documents.md")).unwrap();
    let mut found = BTreeMap::new();
    let mut title = "";
    let mut block: Option<String> = None;
    for line in text.lines() {
        match &mut block {
            None if line == "```jsonc" => block = Some(String::new()),
            None => title = line.strip_prefix("## ").unwrap_or(title),
            Some(text) if line == "```" => {
                let again = found.insert(title.to_owned(), std::mem::take(text));
                assert_eq!(again, None, "two blocks in {title}");
                block = None;
            }
            Some(text) => {
                text.push_str(without_comment(line));
                text.push('\n');
            }
        }
    }
    assert_eq!(block, None);
    found
}

/// A line up to the `//` that is in no string.
fn without_comment(line: &str) -> &str {
    let mut quoted = false;
    let mut escaped = false;
    for (at, char) in line.char_indices() {
        match char {
            _ if escaped => escaped = false,
            '\\' => escaped = quoted,
            '"' => quoted = !quoted,
            '/' if !quoted && line[at..].starts_with("//") => return &line[..at],
            _ => {}
        }
    }
    line
}

fn violations(thread: &Thread, profile: Profile) -> Vec<String> {
    let found = validate(thread, profile);
    found.iter().map(Violation::to_string).collect()
}

/// What a golden schema finds wrong.
fn schema_errors(file: &str, text: &str) -> Vec<String> {
    let schema = std::fs::read_to_string(docs("schemas").join(file)).unwrap();
    let schema = serde_json::from_str(&schema).unwrap();
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    let document = serde_json::from_str(text).unwrap();
    let errors = validator.iter_errors(&document);
    errors
        .map(|error| format!("{} at {}", error, error.instance_path()))
        .collect()
}

const NONE: [String; 0] = [];

#[test]
fn the_documentation_shows_a_document_of_each_version_and_an_archive() {
    let blocks = blocks();
    let titles: Vec<_> = blocks.keys().map(String::as_str).collect();
    let expected = ["0.0.3", "0.0.4", "1.0.0", "2.0.0", "The archive, 1.0.0"];
    assert_eq!(titles, expected);
    for version in ["0.0.3", "0.0.4", "1.0.0", "2.0.0"] {
        let thread = Thread::decode(&blocks[version]).unwrap();
        assert_eq!(thread.version(), Version::from(version));
    }
}

#[test]
fn each_document_of_the_documentation_is_valid_without_a_warning() {
    let blocks = blocks();
    for version in ["0.0.4", "0.0.3", "2.0.0"] {
        let thread = Thread::decode(&blocks[version]).unwrap();
        assert_eq!(violations(&thread, Profile::Strict), NONE, "{version}");
    }
    let oldest = Thread::decode(&blocks["1.0.0"]).unwrap();
    let read_only =
        "warning tp-version at \"/version\": version 1.0.0 is only read; upgrade it to write it";
    assert_eq!(violations(&oldest, Profile::Lenient), [read_only]);
}

#[test]
fn each_document_of_the_documentation_is_valid_by_the_published_schemas() {
    let blocks = blocks();
    for version in ["0.0.4", "0.0.3", "2.0.0", "1.0.0"] {
        for file in [
            format!("threadprotocol-{version}.json"),
            format!("threadprotocol-{version}.strict.json"),
        ] {
            assert_eq!(schema_errors(&file, &blocks[version]), NONE, "{file}");
        }
    }
    let archive = &blocks["The archive, 1.0.0"];
    assert_eq!(schema_errors("loomline-archive-1.json", archive), NONE);
}

#[test]
fn each_older_document_of_the_documentation_upgrades_to_one_that_may_be_written() {
    let blocks = blocks();
    for version in ["1.0.0", "2.0.0", "0.0.3"] {
        let thread = Thread::decode(&blocks[version]).unwrap();
        let upgraded = thread::upgrade(&thread).unwrap().thread;
        assert_eq!(upgraded.version(), Version::V0_0_4);
        assert_eq!(violations(&upgraded, Profile::Strict), NONE, "{version}");
        let text = upgraded.encode();
        let file = "threadprotocol-0.0.4.strict.json";
        assert_eq!(schema_errors(file, &text), NONE, "{version}");
    }
}

#[test]
fn the_archive_of_the_documentation_is_read_and_comes_back_the_same() {
    let text = &blocks()["The archive, 1.0.0"];
    let archive = Archive::decode(text.as_str(), &Limits::default()).unwrap();
    let formats: Vec<_> = archive.runs.iter().map(|run| run.format).collect();
    assert_eq!(formats, [Format::PydanticAi]);
    assert_eq!(archive.runs[0].records.len(), 2);
    assert_eq!(
        Json::parse(&archive.encode()).unwrap(),
        Json::parse(text).unwrap()
    );
}
