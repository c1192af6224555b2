//! The horizontal scale of a waterfall: instants to units, with long pauses drawn shorter.

use jiff::Timestamp;

/// Width of a drawing, in units.
pub(super) const WIDTH: i64 = 1_000;
/// The share of the work's time that a pause takes up at most.
const PAUSE_SHARE: i64 = 6;

/// A pause or a stretch of work between two instants, in milliseconds and in units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ScalePiece {
    from: i64,
    to: i64,
    start: i64,
    end: i64,
}

/// A scale of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TimeScale {
    pieces: Vec<ScalePiece>,
    /// Whether a pause is drawn shorter than it was.
    pub(super) is_cut: bool,
}

impl TimeScale {
    /// The scale from one instant to another. A pause in `pauses` is drawn with at most a sixth of the
    /// width that the rest has.
    pub(super) fn new(
        (from, to): (Timestamp, Timestamp),
        pauses: &[(Timestamp, Timestamp)],
    ) -> Self {
        let (from, to) = (from.as_millisecond(), to.as_millisecond());
        let mut lengths = Vec::new();
        let mut at = from;
        let mut sorted: Vec<(i64, i64)> = pauses
            .iter()
            .map(|(from, to)| (from.as_millisecond(), to.as_millisecond()))
            .collect();
        sorted.sort_unstable();
        for (start, end) in sorted {
            let (start, end) = (start.clamp(at, to.max(at)), end.clamp(at, to.max(at)));
            lengths.push((at, start, false));
            lengths.push((start, end, true));
            at = end;
        }
        lengths.push((at, to.max(at), false));
        let work: i64 = lengths
            .iter()
            .filter(|(_, _, is_pause)| !is_pause)
            .map(|(from, to, _)| to - from)
            .sum();
        let longest = (work / PAUSE_SHARE).max(1);
        let drawn = |(from, to, is_pause): &(i64, i64, bool)| {
            let length = to - from;
            if *is_pause {
                length.min(longest)
            } else {
                length
            }
        };
        let total: i64 = lengths.iter().map(drawn).sum::<i64>().max(1);
        let is_cut = lengths.iter().any(|piece| drawn(piece) < piece.1 - piece.0);
        let mut sum = 0;
        let pieces = lengths.iter().map(|piece| {
            let start = units(sum, total);
            sum += drawn(piece);
            ScalePiece {
                from: piece.0,
                to: piece.1,
                start,
                end: units(sum, total),
            }
        });
        Self {
            pieces: pieces.collect(),
            is_cut,
        }
    }

    /// The place of an instant in the drawing.
    pub(super) fn units(&self, at: Timestamp) -> i64 {
        let at = at.as_millisecond();
        let mut pieces = self.pieces.iter();
        let found = pieces.find(|piece| at <= piece.to);
        let Some(piece) = found.or(self.pieces.last()) else {
            return 0;
        };
        let length = (piece.to - piece.from).max(1);
        let within = (at - piece.from).clamp(0, length);
        piece.start + (piece.end - piece.start) * within / length
    }
}

fn units(millis: i64, total: i64) -> i64 {
    i64::try_from(i128::from(millis) * i128::from(WIDTH) / i128::from(total)).unwrap_or(WIDTH)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn a_scale_without_pauses_is_linear() {
        let scale = TimeScale::new((at(100), at(200)), &[]);
        let units: Vec<i64> = [99, 100, 125, 200, 300]
            .map(|it| scale.units(at(it)))
            .into();
        assert_eq!(units, [0, 0, 250, 1_000, 1_000]);
        assert!(!scale.is_cut);
    }

    #[test]
    fn a_long_pause_takes_a_sixth_of_the_work() {
        let scale = TimeScale::new((at(0), at(10_006)), &[(at(3), at(10_003))]);
        let units: Vec<i64> = [0, 3, 10_003, 10_006].map(|it| scale.units(at(it))).into();
        assert_eq!(units, [0, 428, 571, 1_000]);
        assert!(scale.is_cut);
    }

    #[test]
    fn an_empty_scale_has_everything_at_its_start() {
        let scale = TimeScale::new((at(5), at(5)), &[(at(5), at(5))]);
        assert_eq!(scale.units(at(5)), 0);
    }
}
