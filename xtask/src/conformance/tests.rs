use super::*;

fn table(change: impl Fn(&str) -> Option<String>) -> String {
    let mut text = String::from("# Table\n\n| id | state | tests |\n|---|---|---|\n");
    for (id, group) in ids::all() {
        let rule = if group.has_rules { " It holds. |" } else { "" };
        let row = change(&id).unwrap_or_else(|| format!("| {id} |{rule} open | |"));
        text.push_str(&row);
        text.push('\n');
    }
    text
}

fn findings(text: &str) -> Vec<String> {
    let tests = Tests {
        functions: BTreeSet::from(["a_thing_holds".to_owned()]),
        titles: BTreeSet::from(["a chat resumes".to_owned()]),
        files: BTreeSet::from(["conformance/tp/case.md".to_owned()]),
    };
    judge(&rows(text), &tests)
}

#[test]
fn a_table_with_every_requirement_once_is_sound() {
    assert_eq!(findings(&table(|_| None)), Vec::<String>::new());
}

#[test]
fn a_missing_row_is_named() {
    let text = table(|id| (id == "EK-7").then(String::new));
    assert_eq!(findings(&text), ["docs/conformance.md: EK-7 has no row"]);
}

#[test]
fn a_second_row_and_an_unknown_id_are_refused() {
    let text = table(|_| None) + "| X-9 | open | |\n| X-10 | open | |\n";
    let found = findings(&text);
    assert_eq!(found.len(), 2);
    assert!(found[0].ends_with("X-9: this requirement has a row already"));
    assert!(found[1].ends_with("X-10: there is no such requirement"));
}

#[test]
fn functions_titles_and_files_count_as_tests() {
    let row = "| TP-1 | done | `a_thing_holds`, `a chat resumes`, `conformance/tp/case.md` |";
    let text = table(|id| (id == "TP-1").then(|| row.to_owned()));
    assert_eq!(findings(&text), Vec::<String>::new());
}

#[test]
fn a_test_that_does_not_exist_is_refused() {
    let text = table(|id| (id == "TP-1").then(|| "| TP-1 | partial | `nowhere` |".to_owned()));
    assert!(findings(&text)[0].ends_with("TP-1: there is no test `nowhere`"));
}

#[test]
fn done_needs_a_test_and_a_state_is_one_of_three() {
    let text = table(|id| match id {
        "TP-1" => Some("| TP-1 | done | |".into()),
        "TP-2" => Some("| TP-2 | nearly | `a_thing_holds` |".into()),
        _ => None,
    });
    let found = findings(&text);
    assert!(found[0].ends_with("TP-1: done needs a test that shows it"));
    assert!(found[1].ends_with("TP-2: \"nearly\" is not done, partial, open or not ours"));
}

#[test]
fn a_missing_rule_gap_or_untested_thing_is_named() {
    for id in ["UAP §5.3 MUST 4", "UPP §10.2", "gap 21", "untested 22"] {
        let text = table(|other| (other == id).then(String::new));
        let expected = format!("docs/conformance.md: {id} has no row");
        assert_eq!(findings(&text), [expected]);
    }
}

#[test]
fn a_second_rule_and_an_unknown_one_are_refused() {
    let text = table(|_| None)
        + "| gap 21 | Again. | open | |\n| gap 22 | One more. | open | |\n\
           | UAP §5.3 MUST 5 | A fifth. | open | |\n| UPP §99.1 | None. | open | |\n";
    let found = findings(&text);
    assert_eq!(found.len(), 4, "{found:?}");
    assert!(found[0].ends_with("gap 21: this requirement has a row already"));
    for (found, id) in found[1..]
        .iter()
        .zip(["gap 22", "UAP §5.3 MUST 5", "UPP §99.1"])
    {
        assert!(found.ends_with(&format!("{id}: there is no such requirement")));
    }
}

#[test]
fn a_rule_says_what_it_is_and_its_tests_exist() {
    let found = |row: &str| {
        let row = row.to_owned();
        findings(&table(|id| (id == "gap 7").then(|| row.clone())))
    };
    assert!(found("| gap 7 | open | |")[0].ends_with("what the rule says is missing"));
    assert!(found("| gap 7 | | open | |")[0].ends_with("what the rule says is missing"));
    assert!(found("| gap 7 | It. | done | |")[0].ends_with("done needs a test that shows it"));
    let unknown = found("| gap 7 | It. | partial | `nowhere` |");
    assert!(unknown[0].ends_with("there is no test `nowhere`"));
    let named = "| gap 7 | `It` says so. | done | `a_thing_holds` |";
    assert_eq!(found(named), Vec::<String>::new());
}

#[test]
fn only_a_rule_can_be_for_somebody_else() {
    let text = table(|id| match id {
        "UAP §8.2 MUST 1" => Some("| UAP §8.2 MUST 1 | The developer must. | not ours | |".into()),
        "UAP-1" => Some("| UAP-1 | not ours | |".into()),
        _ => None,
    });
    let found = findings(&text);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].ends_with("UAP-1: a requirement is always ours"));
}

#[test]
fn the_summary_counts_each_table() {
    let text = table(|id| match id {
        "TP-1" => Some("| TP-1 | done | `a_thing_holds` |".into()),
        "gap 1" => Some("| gap 1 | It. | partial | `a_thing_holds` |".into()),
        "UAP §8.2 MUST 1" => Some("| UAP §8.2 MUST 1 | They. | not ours | |".into()),
        _ => None,
    });
    let summary = summary(&rows(&text)).unwrap();
    let line = |name: &str| {
        let line = summary.lines().find(|line| line.starts_with(name)).unwrap();
        line[name.len()..]
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(line("TP "), "1 0 17 0");
    assert_eq!(line("gaps"), "0 1 20 0");
    assert!(line("UAP rules").ends_with(" 1"));
    assert!(summary.contains("2 tests named"));
}

#[test]
fn names_in_comments_and_strings_are_no_functions() {
    let source = Source {
        path: "crates/x/src/lib.rs".into(),
        text: "// fn not_this\nconst A: &str = \"fn nor_this\";\nfn this_one() {}".into(),
    };
    assert_eq!(functions(&source), ["this_one"]);
}

#[test]
fn titles_are_read_from_javascript() {
    let source = Source {
        path: "tests/js/chat.test.mjs".into(),
        text: "test('one', async () => {});\ntest(\n  \"two, three\",\n);".into(),
    };
    assert_eq!(titles(&source), ["one", "two, three"]);
}
