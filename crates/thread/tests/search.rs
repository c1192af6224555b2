//! Full text over a thread.

use loomline_thread::search::{SearchOptions, Source, search, search_with, searchable_text};
use loomline_thread::{Json, Object, Thread};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

fn fixture() -> Thread {
    Thread::decode(include_str!("fixtures/conversation.json")).expect("a fixture")
}

#[test]
fn everything_people_may_look_for_is_listed_in_document_order() {
    let thread = fixture();
    let found = searchable_text(&thread);
    let found: Vec<_> = found
        .iter()
        .map(|passage| (&*passage.pointer, passage.source, &*passage.text))
        .collect();
    assert_eq!(
        found,
        [
            ("/title", Source::Title, "A loom for the attic"),
            (
                "/turns/0/parts/0/content/0",
                Source::UserPrompt,
                "Does this loom fit?"
            ),
            (
                "/turns/1/messages/0/parts/0/content",
                Source::Thinking,
                "Two walls to measure."
            ),
            (
                "/turns/1/messages/0/parts/1/content",
                Source::Text,
                "Measuring both walls."
            ),
            (
                "/turns/1/messages/2/parts/1/content",
                Source::RetryPrompt,
                "malformed arguments"
            ),
            (
                "/turns/2/messages/0/parts/0/content",
                Source::Text,
                "It fits. Shall I order it?"
            ),
            (
                "/turns/3/parts/0/content",
                Source::UserPrompt,
                "Yes, please."
            ),
            (
                "/turns/4/messages/0/parts/0/content",
                Source::ToolReturn,
                "ordered"
            ),
            ("/turns/4/messages/1/parts/0/content", Source::Text, "Done."),
        ]
    );
}

#[test]
fn a_word_is_found_in_any_case_with_what_stands_around_it() {
    let options = SearchOptions {
        context_chars: 4,
        ..SearchOptions::default()
    };
    let hits = search_with(&fixture(), "LOOM", &options);
    let found: Vec<_> = hits
        .iter()
        .map(|hit| (&*hit.pointer, hit.range.clone(), &*hit.excerpt))
        .collect();
    assert_eq!(
        found,
        [
            ("/title", 2..6, "A loom for…"),
            ("/turns/0/parts/0/content/0", 10..14, "…his loom fit…"),
        ]
    );
}

#[test]
fn thoughts_are_searched_only_when_asked() {
    let thread = fixture();
    assert_eq!(search(&thread, "walls").len(), 1);
    let thinking = SearchOptions {
        thinking: true,
        ..SearchOptions::default()
    };
    let sources: Vec<_> = search_with(&thread, "walls", &thinking)
        .iter()
        .map(|hit| hit.source)
        .collect();
    assert_eq!(sources, [Source::Thinking, Source::Text]);
}

#[test]
fn whole_words_are_found_when_asked() {
    let thread = fixture();
    assert_eq!(search(&thread, "order").len(), 2);
    let whole = SearchOptions {
        whole_words: true,
        ..SearchOptions::default()
    };
    assert_eq!(search_with(&thread, "order", &whole).len(), 1);
}

#[test]
fn strings_deep_in_what_a_tool_returned_are_found_and_its_keys_are_not() {
    let thread = Thread::decode(
        r#"{"turns":[{"turn_type":"user","parts":[{"part_kind":"tool-return",
            "content":[[],{},{"loom/x":["no",{"a":"a loom"}]},"loom"]}]}]}"#,
    )
    .unwrap();
    let pointers: Vec<_> = search(&thread, "loom")
        .into_iter()
        .map(|hit| hit.pointer)
        .collect();
    let content = "/turns/0/parts/0/content";
    assert_eq!(
        pointers,
        [format!("{content}/2/loom~1x/1/a"), format!("{content}/3")]
    );
}

#[test]
fn an_empty_query_finds_nothing() {
    assert_eq!(search(&fixture(), " \t"), []);
}

/// Few letters, so that phrases come again and overlap.
fn text() -> impl Strategy<Value = String> {
    let letters = select(vec!["a", "A", "b", "ä", "Ä", "İ", " ", "\n ", "ß", "東"]);
    vec(letters, 0..24).prop_map(|letters| letters.concat())
}

fn folded(text: &str) -> String {
    let mut folded = String::new();
    for char in text.chars() {
        if !char.is_whitespace() {
            folded.extend(char.to_lowercase());
        } else if !folded.ends_with(' ') {
            folded.push(' ');
        }
    }
    folded
}

proptest! {
    #[test]
    fn search_finds_what_a_plain_search_of_folded_text_finds(text in text(), query in text()) {
        let thread = Thread::from_root(Object::new().with("title", text.as_str()));
        let hits = search(&thread, &query);
        let needle = folded(query.trim());
        let n_plain = if needle.is_empty() { 0 } else { folded(&text).matches(&needle).count() };
        prop_assert_eq!(hits.len(), n_plain);
        let mut end = 0;
        for hit in hits {
            let found = text.get(hit.range.clone()).expect("whole characters");
            prop_assert!(folded(found).contains(&needle));
            prop_assert!(hit.excerpt.contains(found));
            prop_assert!(hit.range.end > end);
            end = hit.range.end;
        }
    }

    #[test]
    fn every_passage_is_the_string_at_its_pointer(texts in vec(text(), 0..6)) {
        let content = Json::object(texts.iter().map(|text| (text.clone(), Json::from(vec![text.as_str()]))));
        let part = Object::new().with("part_kind", "tool-return").with("content", content);
        let turn = Object::new().with("turn_type", "user").with("parts", vec![part]);
        let thread = Thread::from_root(Object::new().with("turns", vec![turn]));
        let root = Json::Object(thread.root().clone());
        let passages = searchable_text(&thread);
        let distinct: std::collections::BTreeSet<_> = texts.iter().collect();
        prop_assert_eq!(passages.len(), distinct.len());
        for passage in passages {
            prop_assert_eq!(root.pointer(&passage.pointer).and_then(Json::as_str), Some(&*passage.text));
        }
    }
}
