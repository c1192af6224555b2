//! The stream gives what a fresh parse of the text gives.

use super::documents::{AWKWARD, Dice};
use super::model::Container;
use crate::markdown::{MarkdownStream, render};

/// Applies the end of the text to a copy of the page, and compares it with a fresh parse.
fn check_end(stream: &MarkdownStream, page: &Container) {
    let mut copy = Container::new();
    let (mut stream, mut out) = (stream.clone(), Vec::new());
    stream.finish(&mut out);
    copy.restore(page);
    copy.apply(&out);
    let source = stream.source();
    assert_eq!(copy.blocks(), render(source, 2), "{source:?}");
    assert_eq!(copy.html(), stream.html(), "{source:?}");
    // Only definitions of links may change blocks that were final.
    assert!(copy.n_whole == 0 || source.contains("]:"), "{source:?}");
}

/// Streams a document character by character. Each prefix that `is_end` selects is ended.
fn check(document: &str, stream: MarkdownStream, is_end: impl Fn(usize) -> bool) {
    let (mut stream, mut page) = (stream, Container::new());
    for (at, c) in document.char_indices() {
        let mut out = Vec::new();
        stream.push(c.encode_utf8(&mut [0; 4]), &mut out);
        page.apply(&out);
        assert_eq!(page.html(), stream.html());
        if is_end(at + c.len_utf8()) {
            check_end(&stream, &page);
        }
    }
    check_end(&stream, &page);
}

fn stream() -> MarkdownStream {
    MarkdownStream::new("m", 2)
}

#[test]
fn every_prefix_of_an_awkward_document_ends_as_a_fresh_parse() {
    for document in AWKWARD {
        check(document, stream(), |_| true);
        check(document, stream().eager(), |_| true);
    }
}

#[test]
fn every_prefix_of_a_random_document_ends_as_a_fresh_parse() {
    let mut dice = Dice::new(1);
    for n in 0..3_000 {
        let stream = if n % 8 == 0 {
            stream()
        } else {
            stream().eager()
        };
        check(&dice.document(), stream, |_| true);
    }
}

#[test]
fn a_stream_begins_as_an_empty_container() {
    assert_eq!(stream().html(), Container::new().html());
}

#[test]
fn a_finished_stream_takes_no_more_text() {
    let (mut stream, mut out) = (stream(), Vec::new());
    stream.push("a", &mut out);
    stream.finish(&mut out);
    out.clear();
    stream.push("b", &mut out);
    stream.finish(&mut out);
    assert_eq!(out, []);
    assert_eq!(stream.source(), "a");
}

#[test]
fn a_block_is_final_after_a_blank_line_and_two_blocks() {
    for (source, is_final) in [
        ("a\n\nb\n\nc", true),
        ("a\n\nb\n# c", true),
        ("# a\n# b\n# c", false),
        ("a\n\nb\n", false),
        ("a\n\nb\n\n[c]: d", false),
    ] {
        let (mut stream, mut out) = (stream().eager(), Vec::new());
        stream.push(source, &mut out);
        let n_batches = stream.html().matches(r#"class="b""#).count();
        assert_eq!(n_batches, usize::from(is_final), "{source:?}");
    }
}

#[test]
fn new_text_is_shown_within_the_last_block() {
    for (source, html) in [
        ("a", r#"<p dir="auto">a<span id="m-x"></span></p>"#),
        ("- a", r#"a<span id="m-x"></span></li></ul>"#),
        ("```\na\n", "a\n<span id=\"m-x\"></span></code></pre>"),
        ("```\na\n```\n", "a\n</code></pre><span id=\"m-x\"></span>"),
        ("a\n\n", r#"a</p><span id="m-x"></span>"#),
    ] {
        let mut stream = stream().eager();
        stream.push(source, &mut Vec::new());
        assert!(
            stream.html().contains(html),
            "{source:?}: {}",
            stream.html()
        );
    }
}
