//! A text that is streamed in any pieces ends as a fresh parse, and has no element that others wrote.
#![no_main]

use libfuzzer_sys::fuzz_target;
use loomline_web::Patch;
use loomline_web::markdown::{MarkdownStream, render};

/// The blocks that the patches leave: batches without their elements, or the whole.
fn blocks(patches: &[Patch]) -> String {
    let mut html = String::new();
    for patch in patches {
        match patch {
            Patch::Before { html: batch, .. } => html.push_str(inner(batch)),
            Patch::Put { id, html: whole } if id == "m" => html = inner(whole).to_owned(),
            _ => {}
        }
    }
    html
}

/// The HTML within the outermost element.
fn inner(html: &str) -> &str {
    let html = html.split_once('>').expect("a tag").1;
    html.strip_suffix("</div>").expect("an end tag")
}

fuzz_target!(|input: (Vec<u8>, &str)| {
    let (lengths, text) = input;
    let (mut stream, mut patches) = (MarkdownStream::new("m", 2), Vec::new());
    let mut rest = text;
    for length in lengths.iter().cycle().take(text.len()) {
        let (piece, after) = rest.split_at(rest.floor_char_boundary(1 + usize::from(*length)));
        stream.push(piece, &mut patches);
        rest = after;
    }
    stream.push(rest, &mut patches);
    assert_eq!(stream.source(), text);
    stream.finish(&mut patches);
    let fresh = render(text, 2);
    assert_eq!(blocks(&patches), fresh);
    for tag in [
        "<script",
        "<img",
        "<svg",
        "<iframe",
        "<style",
        "<form",
        "href=\"javascript",
    ] {
        assert!(!fresh.contains(tag));
    }
});
