//! Any text is refused, or is an event that means the same when it is written and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use loomline_timeline::Event;

fuzz_target!(|text: &str| {
    let Ok(event) = Event::decode(text) else {
        return;
    };
    let written = event.encode().expect("an event can be written");
    let again = Event::decode(&written).expect("what was written can be read");
    assert_eq!(again, event);
    assert_eq!(again.encode().expect("an event can be written"), written);
});
