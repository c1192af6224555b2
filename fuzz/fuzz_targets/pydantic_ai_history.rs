//! Any text is refused with a place, or is a history that comes back as it was, through the archive's
//! JSON too, that can be added to itself once, and that has one document, sound for writing.
#![no_main]

use libfuzzer_sys::fuzz_target;
use loomline_interop::archive::Archive;
use loomline_interop::convert::ReadOptions;
use loomline_interop::pydantic_ai::{append, read, write};
use loomline_thread::{Json, Limits, Profile, Severity, validate};

fuzz_target!(|text: &str| {
    let options = ReadOptions::default();
    let mut archive = match read(text, &options) {
        Ok(archive) => archive,
        Err(error) => {
            assert!(error.pointer().is_empty() || error.pointer().starts_with('/'));
            return;
        }
    };
    let back = write(&archive).value;
    let json = Json::parse(text).expect("what was read is JSON");
    assert_eq!(Json::parse(&back).expect("what was written is JSON"), json);
    let again = Archive::decode(archive.encode(), &Limits::default());
    assert_eq!(again.as_ref(), Ok(&archive));
    let document = archive.to_thread().value;
    for violation in validate(&document, Profile::Strict) {
        let is_sound = violation.severity != Severity::Error;
        assert!(
            is_sound || !violation.pointer.starts_with("/turns/"),
            "{violation}"
        );
    }
    let runs = archive.runs.clone();
    append(&mut archive, text, &options).expect("what was read can be added");
    assert_eq!(archive.runs, runs);
});
