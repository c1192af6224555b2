//! Any document can be brought to every version there is a way to, and back, without a panic; the report
//! points into the document it began with.
#![no_main]

use libfuzzer_sys::fuzz_target;
use loomline_thread::{Json, Profile, Thread, Version, Versioned, downgrade, upgrade, validate};

fuzz_target!(|text: &str| {
    let Ok(thread) = Thread::decode(text) else {
        return;
    };
    let _ = validate(&thread, Profile::Strict);
    let Ok(newest) = upgrade(&thread) else {
        return;
    };
    told(&thread, &newest);
    assert_eq!(newest.thread.version(), Version::NEWEST);
    let again = upgrade(&newest.thread).expect("the newest version is known");
    assert_eq!(again.thread, newest.thread);
    for version in [Version::V0_0_3, Version::V2_0_0] {
        let older = downgrade(&newest.thread, &version).expect("there is a way down");
        told(&newest.thread, &older);
        assert_eq!(older.thread.version(), version);
        let _ = upgrade(&older.thread).expect("and up again");
    }
});

fn told(source: &Thread, versioned: &Versioned) {
    let source = Json::from(source.root().clone());
    for change in &versioned.changes {
        assert!(source.pointer(&change.pointer).is_some(), "{change}");
    }
}
