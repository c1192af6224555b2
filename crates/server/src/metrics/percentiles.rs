//! Percentiles of the durations in a text of figures.

use std::collections::BTreeMap;

/// The percentiles that are computed.
const WANTED: [f64; 3] = [0.5, 0.95, 0.99];

/// The number of durations, and the 50th, 95th and 99th percentile in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Percentiles {
    pub(crate) count: u64,
    pub(crate) of: [Option<f64>; 3],
}

/// The percentiles of a histogram, over all of its labels. `text` is in the format of `OpenMetrics`,
/// which is the only way to read the buckets.
pub(super) fn percentiles(text: &str, name: &str) -> Percentiles {
    let mut buckets: BTreeMap<u64, (f64, u64)> = BTreeMap::new();
    let lines = text.lines().filter_map(|line| line.strip_prefix(name));
    for line in lines.filter_map(|line| line.strip_prefix("_bucket{")) {
        let Some((labels, count)) = line.rsplit_once("} ") else {
            continue;
        };
        let bound = labels.split("le=\"").nth(1);
        let bound = bound.and_then(|bound| bound.split('"').next());
        let bound = match bound {
            Some("+Inf") => Some(f64::INFINITY),
            bound => bound.and_then(|bound| bound.parse().ok()),
        };
        let count = count
            .split(' ')
            .next()
            .and_then(|it| it.parse::<u64>().ok());
        if let (Some(bound), Some(count)) = (bound, count) {
            // Positive numbers have the order of their bits.
            buckets.entry(bound.to_bits()).or_insert((bound, 0)).1 += count;
        }
    }
    let count = buckets.values().next_back().map_or(0, |(_, count)| *count);
    let largest = buckets.values().rev().find(|(bound, _)| bound.is_finite());
    let largest = largest.map(|(bound, _)| *bound);
    #[expect(
        clippy::cast_precision_loss,
        reason = "a percentile is an estimate anyway"
    )]
    let of = WANTED.map(|wanted| {
        let rank = wanted * count as f64;
        let found = buckets.values().find(|(_, below)| *below as f64 >= rank);
        let bound = found.map(|(bound, _)| *bound).filter(|_| count > 0)?;
        if bound.is_finite() {
            Some(bound)
        } else {
            largest
        }
    });
    Percentiles { count, of }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_sum_the_buckets_of_all_labels() {
        let text = "\
            d_seconds_bucket{le=\"0.5\",route=\"a\"} 40\n\
            d_seconds_bucket{le=\"1.0\",route=\"a\"} 90\n\
            d_seconds_bucket{le=\"+Inf\",route=\"a\"} 90\n\
            d_seconds_bucket{le=\"0.5\",route=\"b\"} 10\n\
            d_seconds_bucket{le=\"1.0\",route=\"b\"} 10\n\
            d_seconds_bucket{le=\"+Inf\",route=\"b\"} 12\n";
        let expected = Percentiles {
            count: 102,
            of: [Some(1.0), Some(1.0), Some(1.0)],
        };
        assert_eq!(percentiles(text, "d_seconds"), expected);
        assert_eq!(percentiles("", "d_seconds"), Percentiles::default());
    }
}
