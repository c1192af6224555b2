//! Any text is refused with a place, or is a list of UI messages or a stream that comes back unchanged
//! and has one document. Its content in our namespace is believed or not, and never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use loomline_interop::archive::{Archive, Format};
use loomline_interop::convert::{ReadOptions, SourceForm, Trust, WriteOptions, read, write};
use loomline_thread::{Json, Limits, Profile, Severity, validate};

fuzz_target!(|text: &str| {
    for format in [Format::AiSdkUi, Format::AiSdkStream] {
        for trust in [Trust::Nothing, Trust::OwnNamespace] {
            let options = ReadOptions {
                trust,
                ..ReadOptions::default()
            };
            let Ok(archive) = read(SourceForm::Of(format), text, &options) else {
                continue;
            };
            judge(&archive.value);
        }
    }
});

fn judge(archive: &Archive) {
    let again = Archive::decode(archive.encode(), &Limits::default());
    assert_eq!(again.as_ref(), Ok(archive));
    let options = WriteOptions::default();
    for format in Format::ALL {
        let written = write(SourceForm::Of(format), archive, &options).value;
        if format != Format::AiSdkStream {
            assert!(Json::parse_with(&written, &limits()).is_ok(), "{written}");
        }
    }
    for violation in validate(&archive.to_thread().value, Profile::Strict) {
        let is_sound = violation.severity != Severity::Error;
        assert!(
            is_sound || !violation.pointer.starts_with("/turns/"),
            "{violation}"
        );
    }
}

/// The output may nest a little deeper than the input.
fn limits() -> Limits {
    Limits {
        max_depth: 512,
        ..Limits::default()
    }
}
