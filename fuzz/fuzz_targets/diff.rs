//! Any two documents differ by what turns one into the other and back; any text is refused as a diff or
//! applied with a place. Three documents are merged, and merging the same again changes nothing.
#![no_main]

use libfuzzer_sys::fuzz_target;
use loomline_thread::{Diff, Json, Thread, diff, merge, patch};

fuzz_target!(|text: &str| {
    let mut texts = text.splitn(3, '\n');
    let mut next = || Thread::decode(texts.next().unwrap_or("{}"));
    let (Ok(a), Ok(b)) = (next(), next()) else {
        return;
    };
    let changes = diff(&a, &b);
    assert_eq!(patch(&a, &changes).as_ref(), Ok(&b));
    let _ = changes.to_text();
    let json = Json::parse(&changes.to_json().to_text()).expect("a diff is JSON");
    assert_eq!(Diff::from_json(&json).as_ref(), Ok(&changes));
    assert_eq!(patch(&b, &changes.clone().invert()).as_ref(), Ok(&a));
    assert_eq!(merge(&a, &a, &b).thread, b);
    if let Ok(c) = next() {
        let _ = merge(&a, &b, &c);
        if let Ok(foreign) = Diff::from_json(&Json::from(c.root().clone())) {
            let _ = patch(&a, &foreign);
        }
    }
});
