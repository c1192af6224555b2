//! Large contents outside the document.

use loomline_thread::content::{
    ContentStore, ExternaliseOptions, Files, InlineError, MemoryContents, SCHEME, externalise,
    inline,
};
use loomline_thread::{Json, Number, Object, Profile, Rules, Thread, validate};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use std::convert::Infallible;

fn fixture() -> Thread {
    Thread::decode(include_str!("fixtures/conversation.json")).expect("a fixture")
}

fn options(threshold_bytes: usize, files: Files) -> ExternaliseOptions {
    ExternaliseOptions {
        threshold_bytes,
        files,
    }
}

fn root(thread: &Thread) -> Json {
    Json::Object(thread.root().clone())
}

#[test]
fn a_large_return_is_kept_elsewhere_and_referred_to_in_its_place() {
    let thread = fixture();
    let mut store = MemoryContents::new();
    let out = externalise(&thread, &mut store, options(10, Files::Keep)).unwrap();
    let pointer = "/turns/1/messages/2/parts/0/content_ref";
    assert_eq!(out.moved[0].pointer, pointer);
    let found = root(&out.thread)
        .pointer(pointer)
        .map(Json::to_text)
        .unwrap();
    assert_eq!(
        store.get(&out.moved[0].hash),
        Ok(Some(r#"{"cm":312.0}"#.to_owned()))
    );
    assert_eq!(found, expected(&out.moved[0].hash));
    assert_eq!(
        inline(&out.thread, &store).unwrap().encode(),
        thread.encode()
    );
}

fn expected(hash: &str) -> String {
    let digits = hash.strip_prefix("sha256:").expect("a hash");
    format!(
        r#"{{"uri":"loomline+sha256:{digits}","size_bytes":12,"hash":"{hash}","media_type":"application/json"}}"#
    )
}

#[test]
fn the_hash_is_that_of_the_text() {
    let mut store = MemoryContents::new();
    let text =
        r#"{"version":"0.0.3","turns":[{"parts":[{"part_kind":"tool-return","content":{}}]}]}"#;
    let thread = Thread::decode(text).unwrap();
    let out = externalise(&thread, &mut store, options(1, Files::Keep)).unwrap();
    let of_braces = "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";
    assert_eq!(out.moved[0].hash, of_braces);
}

#[test]
fn a_document_without_its_contents_is_valid_once_the_scheme_is_named() {
    let out = externalise(
        &fixture(),
        &mut MemoryContents::new(),
        options(1, Files::Keep),
    )
    .unwrap();
    let mut rules = Rules::from(Profile::Strict);
    rules.schemes = vec![SCHEME.to_owned()];
    assert_eq!(out.moved.len(), 2);
    assert_eq!(validate(&out.thread, rules), []);
}

#[test]
fn only_contents_above_the_threshold_move() {
    let thread = fixture();
    for (threshold_bytes, n_moved) in [(8, 2), (9, 1), (11, 1), (12, 0)] {
        let out = externalise(
            &thread,
            &mut MemoryContents::new(),
            options(threshold_bytes, Files::Keep),
        );
        assert_eq!(out.unwrap().moved.len(), n_moved, "{threshold_bytes}");
    }
    let defaults = ExternaliseOptions::default();
    assert_eq!(defaults, options(102_400, Files::Keep));
}

#[test]
fn equal_contents_are_stored_once() {
    let part = r#"{"part_kind":"tool-return","content":{"a":[1,2,3]}}"#;
    let text = format!(
        r#"{{"version":"0.0.4","turns":[{{"parts":[{part},{part}]}},{{"messages":[{{"parts":[{part}]}}]}}]}}"#
    );
    let mut store = MemoryContents::new();
    let thread = Thread::decode(&text).unwrap();
    let out = externalise(&thread, &mut store, options(3, Files::Keep)).unwrap();
    assert_eq!((out.moved.len(), store.len()), (3, 1));
    let again = externalise(&out.thread, &mut store, options(3, Files::Keep)).unwrap();
    assert_eq!((again.moved.len(), again.thread), (0, out.thread));
}

#[test]
fn the_data_of_files_goes_only_when_asked() {
    let thread = fixture();
    let mut store = MemoryContents::new();
    let out = externalise(&thread, &mut store, options(3, Files::Move)).unwrap();
    let item = root(&out.thread)
        .pointer("/turns/0/parts/0/content/2")
        .cloned()
        .unwrap();
    let keys: Vec<_> = item
        .as_object()
        .unwrap()
        .keys()
        .map(str::to_owned)
        .collect();
    assert_eq!(keys, ["kind", "content_ref", "media_type", "identifier"]);
    assert_eq!(
        store.get(&out.moved[0].hash),
        Ok(Some(r#""aGk=""#.to_owned()))
    );
    assert_eq!(inline(&out.thread, &store).unwrap(), thread);
}

#[test]
fn a_document_older_than_references_stays_as_it_is() {
    let text =
        r#"{"version":"2.0.0","turns":[{"parts":[{"part_kind":"tool-return","content":"long"}]}]}"#;
    let thread = Thread::decode(text).unwrap();
    let out = externalise(&thread, &mut MemoryContents::new(), options(1, Files::Move)).unwrap();
    assert_eq!((out.thread, out.moved), (thread, vec![]));
}

/// A store whose texts can be damaged.
struct Damaged(Option<&'static str>);

impl ContentStore for Damaged {
    type Error = Infallible;

    fn put(&mut self, _: &str, _: &str) -> Result<(), Infallible> {
        Ok(())
    }

    fn get(&self, _: &str) -> Result<Option<String>, Infallible> {
        Ok(self.0.map(str::to_owned))
    }
}

#[test]
fn a_content_that_is_missing_or_another_is_refused_with_its_place() {
    let out = externalise(
        &fixture(),
        &mut MemoryContents::new(),
        options(10, Files::Keep),
    )
    .unwrap();
    let place = "/turns/1/messages/2/parts/0/content_ref";
    let missing = inline(&out.thread, &Damaged(None)).unwrap_err();
    assert!(
        matches!(missing, InlineError::Missing { pointer, hash } if pointer == place && hash == out.moved[0].hash)
    );
    let other = inline(&out.thread, &Damaged(Some(r#"{"cm":312}"#))).unwrap_err();
    assert!(
        matches!(other, InlineError::HashMismatch { pointer, expected, .. } if pointer == place && expected == out.moved[0].hash)
    );
}

#[test]
fn a_reference_that_says_two_hashes_is_refused() {
    let text = format!(
        r#"{{"version":"0.0.4","turns":[{{"parts":[{{"part_kind":"tool-return","content_ref":{{"uri":"{SCHEME}:00","hash":"sha256:11"}}}}]}}]}}"#
    );
    let refused = inline(&Thread::decode(&text).unwrap(), &MemoryContents::new()).unwrap_err();
    assert!(
        matches!(refused, InlineError::HashMismatch { expected, found, .. } if expected == "sha256:00" && found == "sha256:11")
    );
}

#[test]
fn a_stored_text_that_is_no_json_is_refused() {
    let mut store = MemoryContents::new();
    let hash = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
    store.put(&format!("sha256:{hash}"), "hello").unwrap();
    let text = format!(
        r#"{{"version":"0.0.4","turns":[{{"parts":[{{"part_kind":"tool-return","content_ref":{{"uri":"{SCHEME}:{hash}"}}}}]}}]}}"#
    );
    let refused = inline(&Thread::decode(&text).unwrap(), &store).unwrap_err();
    assert!(matches!(refused, InlineError::Decode { .. }));
}

#[test]
fn references_of_others_stay() {
    let thread = fixture();
    assert_eq!(inline(&thread, &MemoryContents::new()).unwrap(), thread);
}

fn number() -> impl Strategy<Value = Json> {
    let spellings = vec![
        "1",
        "1.0",
        "-0",
        "1e2",
        "1E+2",
        "123456789012345678901234567890",
    ];
    select(spellings).prop_map(|text| Json::Number(Number::parse(text).expect("a number")))
}

fn json() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![Just(Json::Null), number(), ".{0,12}".prop_map(Json::String)];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let member = ("[a-z\u{e9}\"]{0,3}", inner.clone());
        prop_oneof![
            vec(inner, 0..4).prop_map(Json::Array),
            vec(member, 0..20).prop_map(Json::object),
        ]
    })
}

fn part() -> impl Strategy<Value = Json> {
    let kind = select(vec!["tool-return", "file", "user-prompt", "text"]);
    let binary = ("[A-Za-z0-9]{0,8}", json())
        .prop_map(|(data, extra)| {
            Json::object([
                ("x", extra),
                ("kind", "binary".into()),
                ("data", data.into()),
                ("media_type", "image/png".into()),
            ])
        })
        .boxed();
    let content = prop_oneof![
        json(),
        binary.clone(),
        vec(binary, 0..3).prop_map(Json::Array)
    ];
    (kind, content, json(), any::<bool>()).prop_map(|(kind, content, extra, referred)| {
        let part = Object::new().with("a", extra).with("content", content);
        let elsewhere = Object::new().with("uri", "s3://bucket/key");
        let part = part.with("part_kind", kind);
        part.with_some("content_ref", referred.then_some(elsewhere))
            .into()
    })
}

fn thread() -> impl Strategy<Value = Thread> {
    let parts = || vec(part(), 0..4).prop_map(|parts| Object::new().with("parts", parts));
    let agent = vec(parts(), 0..3).prop_map(|messages| Object::new().with("messages", messages));
    let odd = json().prop_map(|json| Object::new().with("parts", json));
    vec(prop_oneof![parts(), agent, odd], 0..4).prop_map(|turns| {
        let root = Object::new().with("turns", turns).with("version", "0.0.4");
        Thread::from_root(root)
    })
}

proptest! {
    #[test]
    fn what_was_moved_comes_back_to_the_byte(
        thread in thread(),
        threshold_bytes in 0usize..40,
        files in select(vec![Files::Keep, Files::Move]),
    ) {
        let mut store = MemoryContents::new();
        let out = externalise(&thread, &mut store, options(threshold_bytes, files)).expect("memory");
        let root = root(&out.thread);
        for moved in &out.moved {
            prop_assert_eq!(root.pointer(&format!("{}/hash", moved.pointer)), Some(&(&*moved.hash).into()));
            prop_assert!(moved.size_bytes > threshold_bytes);
        }
        let decoded = Thread::decode(&out.thread.encode()).expect("our own text");
        let back = inline(&decoded, &store).expect("everything is there");
        prop_assert_eq!(back.encode(), thread.encode());
        prop_assert_eq!(back, thread);
    }
}
