//! Instants and durations, for people.

use jiff::Timestamp;
use maud::{Markup, html};

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
    duration(u64::try_from(millis).unwrap_or_default())
}

/// A duration in milliseconds as text: `12 ms`, `1.9 s`, `3 min 5 s`.
pub(crate) fn duration(millis: u64) -> String {
    match millis {
        0..1_000 => format!("{millis} ms"),
        1_000..60_000 => format!("{}.{} s", millis / 1_000, millis % 1_000 / 100),
        60_000..3_600_000 => format!("{} min {} s", millis / 60_000, millis % 60_000 / 1_000),
        _ => format!(
            "{} h {} min",
            millis / 3_600_000,
            millis % 3_600_000 / 60_000
        ),
    }
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
        ] {
            assert_eq!(duration(millis), text);
        }
    }
}
