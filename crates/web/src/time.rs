//! Instants and durations, for people.

use interop::run::duration_text;
use jiff::Timestamp;
use maud::{Markup, html};
use std::time::Duration;

/// An instant. The browser shows it in the reader's time zone.
pub(crate) fn instant(at: Timestamp) -> Markup {
    let text = at.strftime("%Y-%m-%d %H:%M UTC").to_string();
    html! { time datetime=(at.to_string()) { (text) } }
}

/// An instant in milliseconds, which stays in UTC.
pub(crate) fn exact(at: Timestamp) -> Markup {
    let text = at.strftime("%H:%M:%S%.3f").to_string();
    html! { time datetime=(at.to_string()) data-local="" title=(at.to_string()) { (text) } }
}

/// The time between two instants in words.
pub(crate) fn between(from: Timestamp, to: Timestamp) -> String {
    let millis = to.as_millisecond().saturating_sub(from.as_millisecond());
    duration_text(u64::try_from(millis).unwrap_or_default())
}

/// A number of seconds as text, as [`duration_text`].
pub(crate) fn seconds(seconds: f64) -> String {
    let exact = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
    duration_text(u64::try_from(exact.as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_shown_in_the_unit_that_fits() {
        for (millis, text) in [
            (0, "0 ms"),
            (999, "999 ms"),
            (1_949, "1.9 s"),
            (185_000, "3 min 5 s"),
            (7_260_000, "2 h 1 min"),
            (266_400_000, "3 d 2 h"),
        ] {
            assert_eq!(duration_text(millis), text);
        }
        assert_eq!(seconds(0.0025), "2 ms");
        assert_eq!(seconds(12.0), "12.0 s");
    }
}
