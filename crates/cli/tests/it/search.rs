//! `search`, and the rebuilding of its index.

use crate::support::cli::Home;
use serde_json::json;

#[test]
fn search_finds_threads_by_words_and_filters() {
    let home = Home::new();
    for (key, text) in [
        ("a", "flight to Lima"),
        ("b", "flights\nto Łódź"),
        ("c", "stay"),
    ] {
        home.ok(&["run", text, "--thread", key]);
    }
    let text = home.ok(&["search", "flight", "to"]);
    let lines: Vec<_> = text.lines().collect();
    assert!(lines[0].starts_with("a  open  "), "{text}");
    assert!(lines.contains(&"    user  flight to Lima"), "{text}");
    let found = home.run(&[
        "search",
        "ŁODZ",
        "--json",
        "--since",
        "2020-01-01T00:00:00Z",
    ]);
    let rows = found.json();
    assert_eq!((rows.len(), &rows[0]["key"]), (1, &json!("b")));
    let snippets = rows[0]["snippets"].as_array().unwrap();
    let user = snippets.iter().find(|it| it["role"] == "user").unwrap();
    assert_eq!(user["text"], "flights\nto Łódź");
    assert_eq!(user["matches"], json!([[11, 15]]));
    for nothing in [
        &["search", "łodz", "--status", "closed"][..],
        &["search", "\"("],
    ] {
        assert_eq!(home.ok(nothing), "no thread has a text with these words\n");
    }
    assert_eq!(home.run(&["search", "łodz", "--status", "odd"]).code, 2);
    assert_eq!(home.run(&["search", &"x".repeat(513)]).code, 2);
    assert_eq!(home.run(&["search"]).code, 2);
}

#[test]
fn doctor_rebuilds_the_tables_and_the_index() {
    let home = Home::new();
    home.ok(&["run", "flight to Lima", "--thread", "a"]);
    let report = home.ok(&["doctor", "--rebuild"]);
    let rebuilt = "ok  tables and full-text index are rebuilt from the log\n";
    assert!(report.contains(rebuilt), "{report}");
    assert!(home.ok(&["search", "lima"]).starts_with("a  open  "));
    let _server = home.server();
    assert_eq!(home.run(&["doctor", "--rebuild"]).code, 1);
}
