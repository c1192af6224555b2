//! Any text is refused with a place, or is a document that comes back as it was, can be judged
//! under every profile, and has a canonical form that is its own canonical form.
#![no_main]

use libfuzzer_sys::fuzz_target;
use loomline_thread::{CanonicalOptions, Profile, Thread, canonical, pending_tool_calls, validate};

fuzz_target!(|text: &str| {
    let Ok(thread) = Thread::decode(text) else {
        return;
    };
    let again = Thread::decode(&thread.encode()).expect("what was written can be read");
    assert_eq!(again, thread);
    for profile in [Profile::Lenient, Profile::Strict] {
        assert_eq!(validate(&thread, profile), validate(&again, profile));
    }
    let _ = pending_tool_calls(&thread).len();
    for keep_sys in [true, false] {
        let options = CanonicalOptions { keep_sys };
        let Ok(form) = canonical(&thread, options) else {
            continue;
        };
        let read = Thread::decode(&form).expect("a canonical form can be read");
        assert_eq!(canonical(&read, options).expect("a form has a form"), form);
    }
});
