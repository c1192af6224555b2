//! What the real library wrote, of three versions.

use crate::document::errors;
use crate::history::{archive_of, shape, through_json};
use crate::history_laws::through_the_document;
use crate::reference::reference;
use loomline_interop::convert::{AttributedFields, ReadOptions};
use loomline_interop::document::agent_id;
use loomline_interop::pydantic_ai::{append, read, write};
use std::path::{Path, PathBuf};
use thread::{Json, Object};

fn shared() -> Option<PathBuf> {
    Some(reference("the histories of the real library")?.join("vectors"))
}

/// Every history under the shared vectors: its name and text.
fn histories() -> Vec<(String, String)> {
    let Some(root) = shared() else {
        return Vec::new();
    };
    let mut found = Vec::new();
    let folders = [
        "pydantic-ai",
        "pydantic-ai/v1.0.18",
        "pydantic-ai/v1.107.10",
        "pydantic-ai/events",
        "pydantic-ai-replay",
        "pai-adapter",
    ];
    for folder in folders {
        let mut paths: Vec<PathBuf> = std::fs::read_dir(root.join(folder))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|end| end == "json"))
            .collect();
        paths.sort();
        for path in paths {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            let text = std::fs::read_to_string(&path).unwrap();
            let json = || Json::parse(&text).unwrap();
            let mut push = |json: Option<&Json>| {
                let json = json.unwrap_or_else(|| panic!("{name}"));
                found.push((format!("{folder}/{name}"), json.to_text()));
            };
            if name == "index.json" || name == "manifest.json" {
            } else if name.ends_with(".runs.json") {
                json()
                    .as_array()
                    .unwrap()
                    .iter()
                    .for_each(|run| push(run.get("new_messages")));
            } else if name.ends_with(".children.json") {
                json()
                    .as_array()
                    .unwrap()
                    .iter()
                    .for_each(|run| push(run.get("messages")));
            } else if name.ends_with(".extra.json") {
                let partial = json().get("partial_response").cloned();
                push(Some(&Json::Array(partial.into_iter().collect())));
            } else if folder != "pai-adapter" || name.ends_with(".history.json") {
                found.push((format!("{folder}/{name}"), text.trim_end().to_owned()));
            }
        }
    }
    assert!(found.len() > 250, "{}", found.len());
    println!("{} histories", found.len());
    found
}

#[test]
fn every_history_of_the_real_library_comes_back_byte_for_byte() {
    for (name, text) in histories() {
        let archive = through_json(&archive_of(&text));
        assert!(write(&archive).value == text, "{name}");
        let document = archive.to_thread();
        assert_eq!(errors(&document.value), Vec::<String>::new(), "{name}");
    }
}

#[test]
fn every_history_of_the_real_library_comes_back_from_its_document() {
    let (mut n, mut n_named) = (0, 0);
    for (name, text) in histories() {
        let (same, named) = through_the_document(&archive_of(&text))
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        n += same;
        n_named += named;
    }
    println!("{n} messages as they were, {n_named} named by losses");
    assert!(n > n_named || n + n_named == 0);
}

fn entries(folder: &Path) -> Vec<Object> {
    let index = std::fs::read_to_string(folder.join("index.json")).unwrap();
    let index = Json::parse(&index).unwrap().into_array().unwrap();
    index.into_iter().filter_map(Json::into_object).collect()
}

fn said_by(runs: &[Json]) -> Vec<AttributedFields> {
    let text = |run: &Json, key: &str| run.get(key).and_then(Json::as_str).map(str::to_owned);
    let each = runs.iter().map(|run| AttributedFields {
        agent: text(run, "agent").unwrap(),
        run_id: text(run, "run_id"),
        n_messages: run
            .get("n_new_messages")
            .and_then(Json::as_u64)
            .map(|n| usize::try_from(n).unwrap()),
        agent_id: None,
    });
    each.collect()
}

#[test]
fn every_run_of_the_real_library_is_its_agents() {
    let Some(root) = shared() else { return };
    let mut n_runs = 0;
    for folder in [
        "pydantic-ai",
        "pydantic-ai/v1.0.18",
        "pydantic-ai/v1.107.10",
    ] {
        let folder = root.join(folder);
        for entry in entries(&folder) {
            let runs = entry
                .get("runs")
                .and_then(Json::as_array)
                .unwrap_or_default();
            let attribution = said_by(runs);
            if attribution.is_empty() {
                continue;
            }
            let file = entry.get_str("file").unwrap();
            let text = std::fs::read_to_string(folder.join(file)).unwrap();
            let options = ReadOptions {
                attribution: attribution.clone(),
                ..ReadOptions::default()
            };
            let archive = read(&text, &options).unwrap();
            let expected: Vec<_> = attribution.iter().map(|run| agent_id(&run.agent)).collect();
            let found: Vec<_> = archive
                .runs
                .iter()
                .filter(|run| {
                    let id = run.head.get_str("run_id");
                    attribution
                        .iter()
                        .any(|said| said.run_id.is_none() || said.run_id.as_deref() == id)
                })
                .filter_map(|run| run.agent_id.clone())
                .collect();
            assert_eq!(found, expected, "{file}");
            n_runs += found.len();
        }
    }
    println!("{n_runs} runs");
    assert!(n_runs > 100);
}

#[test]
fn every_history_of_the_real_library_grows_run_by_run() {
    let Some(root) = shared() else { return };
    let folder = root.join("pydantic-ai");
    let (mut n, mut n_exact, mut n_rewritten) = (0, 0, 0);
    for entry in entries(&folder) {
        let Some(file) = entry.get_str("runs_file") else {
            continue;
        };
        let text = std::fs::read_to_string(folder.join(entry.get_str("file").unwrap())).unwrap();
        let runs = std::fs::read_to_string(folder.join(file)).unwrap();
        let runs = Json::parse(&runs).unwrap().into_array().unwrap();
        let all: Vec<Json> = Json::parse(&text).unwrap().into_array().unwrap();
        let options = ReadOptions {
            attribution: said_by(&runs),
            ..ReadOptions::default()
        };
        let (mut by_run, mut by_history) = (archive_of("[]"), archive_of("[]"));
        for (place, run) in runs.iter().enumerate() {
            let new = run.get("new_messages").unwrap().to_text();
            append(&mut by_run, &new, &options).unwrap();
            let count = run
                .get("all_messages_count")
                .and_then(Json::as_u64)
                .unwrap();
            let count = usize::try_from(count).unwrap();
            let kept = |run: &Json| {
                run.get("previous_history_kept_as_prefix")
                    .and_then(Json::as_bool)
                    != Some(false)
            };
            let prefix = runs.iter().skip(place + 1).all(kept);
            // What the history was then, as far as what is there tells.
            let whole = if prefix {
                Json::Array(all.iter().take(count).cloned().collect()).to_text()
            } else {
                write(&by_run).value
            };
            append(&mut by_history, &whole, &options).unwrap();
        }
        assert!(write(&by_history).value == text, "{file}");
        let ids: Vec<_> = shape(&by_history)
            .into_iter()
            .filter_map(|(id, _)| id)
            .collect();
        let expected: Vec<_> = runs
            .iter()
            .filter_map(|run| run.get("run_id")?.as_str())
            .collect();
        assert!(
            expected
                .iter()
                .all(|id| ids.iter().any(|found| found == id)),
            "{file}"
        );
        n += 1;
        n_exact += usize::from(write(&by_run).value == text);
        n_rewritten += usize::from(
            by_history
                .runs
                .iter()
                .any(|run| run.head.contains_key("superseded")),
        );
    }
    println!("{n} histories, {n_exact} exact from new messages alone, {n_rewritten} rewritten");
    assert!(n > 15 && n_rewritten >= 3);
}
