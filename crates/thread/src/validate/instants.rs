//! Instants: their form (rule 1) and their order (rules 4 and 5).

use super::{Report, Rule};
use crate::document::{AgentTurn, Interruption, Message, Thread, Turn, items};
use crate::json::{Json, Object};
use crate::path::Path;
use crate::upgrade::in_sequence;
use jiff::Timestamp;

/// Reports a text that is not an instant in ISO 8601.
pub(super) fn check(report: &mut Report<'_>, path: Path<'_>, text: &str) {
    match Reading::of(text) {
        Reading::Instant(_) => {}
        Reading::Local => {
            report.add(
                Rule::TimestampOffset,
                path,
                format!("{text:?} has no offset"),
            );
        }
        Reading::Malformed => {
            report.add(Rule::Timestamp, path, format!("{text:?} is not ISO 8601"));
        }
    }
}

/// Whether text is an instant, or a date and a time of day.
pub(super) fn is_legal(text: &str) -> bool {
    Reading::of(text) != Reading::Malformed
}

/// Whether text is an instant as the protocol has it: ISO 8601, with an offset (2.0.0 rule 1).
#[must_use]
pub fn is_instant(text: &str) -> bool {
    matches!(Reading::of(text), Reading::Instant(_))
}

/// The result of reading a timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    /// A point in time.
    Instant(Timestamp),
    /// A date and time without an offset.
    Local,
    /// Not a timestamp.
    Malformed,
}

impl Reading {
    /// Reads ISO 8601 as far as it names a date and a time of day. jiff also takes spaces, lower
    /// case and zone annotations, which ISO 8601 has not.
    fn of(text: &str) -> Self {
        let plain = text
            .bytes()
            .all(|byte| byte.is_ascii_digit() || b"TZ+-:.,".contains(&byte));
        if !plain || !text.contains('T') {
            return Self::Malformed;
        }
        match (
            text.parse::<Timestamp>(),
            text.parse::<jiff::civil::DateTime>(),
        ) {
            (Ok(instant), _) => Self::Instant(instant),
            (Err(_), Ok(_)) => Self::Local,
            (Err(_), Err(_)) => Self::Malformed,
        }
    }
}

fn instant(text: Option<&str>) -> Option<Timestamp> {
    match Reading::of(text?) {
        Reading::Instant(instant) => Some(instant),
        Reading::Local | Reading::Malformed => None,
    }
}

/// Checks that turns follow one another and messages within a turn do. The same instant is legal
/// (ruling 4); instants that can't be read are compared with nothing.
pub(super) fn check_turns(report: &mut Report<'_>, thread: &Thread) {
    let path = Path::ROOT.key("turns");
    let mut former_end: Option<Timestamp> = None;
    for (place, turn) in thread.turns().enumerate() {
        let path = path.index(place);
        let (key, start, end) = match turn {
            Turn::User(user) => {
                let at = instant(user.submitted_at());
                ("submitted_at", at, at)
            }
            Turn::Agent(agent) => {
                check_messages(report, path, agent);
                (
                    "started_at",
                    instant(agent.started_at()),
                    end_of(report, path, agent),
                )
            }
            Turn::Unknown(_) => continue,
        };
        if former_end
            .zip(start)
            .is_some_and(|(end, start)| start < end)
        {
            report.add(
                Rule::TurnOverlap,
                path.key(key),
                "the turn starts before the former ended",
            );
        }
        former_end = end.or(start).or(former_end);
    }
}

/// When a turn ended, by completion or interruption; that must not be before it started.
fn end_of(report: &mut Report<'_>, path: Path<'_>, turn: AgentTurn<'_>) -> Option<Timestamp> {
    let interrupted_at = turn.interruption().and_then(Interruption::interrupted_at);
    let end = instant(turn.completed_at()).or_else(|| instant(interrupted_at));
    let start = instant(turn.started_at());
    if end.zip(start).is_some_and(|(end, start)| end < start) {
        report.add(Rule::TurnOverlap, path, "the turn ends before it starts");
    }
    end
}

/// Checks that actions follow one another, in the order of their numbers (1.0.0).
pub(super) fn check_actions(report: &mut Report<'_>, root: &Object) {
    let path = Path::ROOT.key("actions");
    let mut former: Option<Timestamp> = None;
    for (place, action) in in_sequence(items(root, "actions")) {
        let Some(at) = instant(action.get("timestamp").and_then(Json::as_str)) else {
            continue;
        };
        if former.is_some_and(|former| at < former) {
            let message = "the action is older than the one before it";
            let path = path.index(place);
            report.add(Rule::MessageOrder, path.key("timestamp"), message);
        }
        former = Some(at);
    }
}

fn check_messages(report: &mut Report<'_>, path: Path<'_>, turn: AgentTurn<'_>) {
    let path = path.key("messages");
    let mut former: Option<Timestamp> = None;
    for (place, message) in turn.messages().enumerate() {
        let timestamp = match message {
            Message::Request(request) => request.timestamp(),
            Message::Response(response) => response.timestamp(),
            Message::System(system) => system.timestamp(),
            Message::Unknown(_) => None,
        };
        let Some(at) = instant(timestamp) else {
            continue;
        };
        if former.is_some_and(|former| at < former) {
            let message = "the message is older than the one before it";
            report.add(
                Rule::MessageOrder,
                path.index(place).key("timestamp"),
                message,
            );
        }
        former = Some(at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iso_8601_is_read_with_and_without_an_offset() {
        for text in [
            "2026-01-05T08:00:00Z",
            "2026-01-05T08:00:00.123456789+05:30",
            "20260105T080000Z",
        ] {
            assert!(matches!(Reading::of(text), Reading::Instant(_)), "{text}");
        }
        assert_eq!(Reading::of("2026-01-05T08:00:00.5"), Reading::Local);
    }

    #[test]
    fn what_only_looks_like_iso_8601_is_malformed() {
        let bad = [
            "",
            "yesterday",
            "2026-01-05",
            "2026-13-05T08:00:00Z",
            "2026-01-05 08:00:00Z",
        ];
        for text in bad
            .into_iter()
            .chain(["2026-01-05T08:00:00+01:00[Europe/Paris]", "1767600000"])
        {
            assert_eq!(Reading::of(text), Reading::Malformed, "{text}");
        }
    }
}
