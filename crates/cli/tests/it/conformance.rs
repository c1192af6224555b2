//! Runs the cases in `conformance/`, which says how they are written.
#![allow(clippy::print_stdout, reason = "which cases were run is worth reading")]

mod cases;
mod lifecycle;
mod loop_;
mod machines;
mod parts;
mod record;
mod tools;

use cases::Case;

type Check = fn(&Case) -> Result<(), String>;

/// The folders, each with what checks its cases.
const FOLDERS: [(&str, Check); 3] = [
    ("threadprotocol", record::check),
    ("ekairos", ekairos),
    ("uap", loop_::check),
];

fn ekairos(case: &Case) -> Result<(), String> {
    match case.blocks.first() {
        Some(first) if first.name == "transitions" => machines::check(case),
        Some(first) if first.name == "prompt" => lifecycle::check(case),
        Some(first) if first.name == "json" => parts::check(case),
        Some(first) => Err(first.unknown()),
        None => Err("the case checks nothing".into()),
    }
}

fn run(folder: &str) {
    let check = FOLDERS.iter().find(|(name, _)| *name == folder).unwrap().1;
    let files = cases::files(folder);
    assert!(!files.is_empty(), "conformance/{folder} has no cases");
    let mut failures = Vec::new();
    let mut n_cases = 0;
    for file in &files {
        let (cases, mut wrong) = cases::read(file);
        failures.append(&mut wrong);
        if cases.is_empty() {
            failures.push(format!("{}: no cases", file.display()));
        }
        for case in cases {
            n_cases += 1;
            match check(&case) {
                Ok(()) => println!("ok      {case}"),
                Err(why) => failures.push(format!("{case}\n{why}\n")),
            }
        }
    }
    let n_failures = failures.len();
    assert!(
        failures.is_empty(),
        "{n_failures} of {n_cases} cases fail:\n\n{}",
        failures.join("\n")
    );
}

#[test]
fn the_record_is_as_thread_protocol_says() {
    run("threadprotocol");
}

#[test]
fn the_runtime_is_as_ekairos_thread_says() {
    run("ekairos");
}

#[test]
fn the_agents_are_as_uap_says() {
    run("uap");
}

#[test]
fn every_folder_of_cases_is_run() {
    let known: Vec<&str> = FOLDERS.iter().map(|(name, _)| *name).collect();
    let unknown: Vec<String> = cases::folders()
        .into_iter()
        .filter(|name| !known.contains(&name.as_str()))
        .collect();
    assert_eq!(unknown, [""; 0]);
}

#[test]
fn a_table_stands_for_each_machine() {
    let files = cases::files("ekairos");
    let cases = files.iter().flat_map(|file| cases::read(file).0);
    let tables = cases.flat_map(|case| case.blocks);
    let tables = tables.filter(|block| block.name == "transitions");
    let mut entities: Vec<String> = tables.map(|block| block.words.join(" ")).collect();
    entities.sort();
    assert_eq!(entities, ["context", "execution", "item", "step", "thread"]);
}

#[test]
fn a_block_that_is_not_understood_is_a_failure() {
    let block = |info: &str| cases::Block::new(info, "x");
    for info in [
        "verdikt",
        "json thing",
        "prompt max_stops=1",
        "canonical with-sys",
    ] {
        let case = Case::new("a", vec![block(info)]);
        for (_, check) in FOLDERS {
            assert!(check(&case).is_err(), "{info}");
        }
    }
    for (_, check) in FOLDERS {
        assert!(check(&Case::new("empty", Vec::new())).is_err());
    }
}
