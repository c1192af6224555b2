//! Any text is refused, or is an archive that comes back as it was and can be seen as a document and
//! as a history; a document of it comes back from an archive of its own.
#![no_main]

use libfuzzer_sys::fuzz_target;
use loomline_interop::archive::Archive;
use loomline_interop::pydantic_ai::write;
use loomline_thread::{Json, Limits};

fuzz_target!(|text: &str| {
    let Ok(archive) = Archive::decode(text, &Limits::default()) else {
        return;
    };
    let again = Archive::decode(archive.encode(), &Limits::default());
    assert_eq!(again.as_ref(), Ok(&archive));
    let document = archive.to_thread();
    assert_eq!(archive.to_thread(), document);
    let own = Archive::from_thread(&document.value);
    assert_eq!(own.to_thread().value, document.value);
    let history = write(&archive).value;
    Json::parse(&history).expect("what was written is JSON");
});
