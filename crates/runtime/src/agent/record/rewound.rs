//! Finds the executions that a rewind removed.

use timeline::{Entry, Reaction, Removed, Transcript};

/// For each execution, whether it was removed together with all later ones of that time. Later runs
/// ignore such executions.
#[derive(Debug)]
pub(super) struct Rewound(Vec<bool>);

impl Rewound {
    /// Linear in the executions.
    pub(super) fn of(transcript: &Transcript) -> Self {
        if transcript.removed().is_empty() {
            return Self(Vec::new());
        }
        let reactions = transcript.entries.iter().filter_map(|entry| match entry {
            Entry::Reaction(reaction) => Some(reaction),
            Entry::Item(_) => None,
        });
        let removed: Vec<Option<usize>> = reactions
            .map(|reaction| removed(transcript, reaction))
            .collect();
        Self(rewound(&removed))
    }

    /// Whether the execution was removed, by its index among all.
    pub(super) fn has(&self, execution: usize) -> bool {
        self.0.get(execution).copied().unwrap_or_default()
    }
}

/// The number of executions that had started when the last step of this one was removed; none if a
/// step is left.
fn removed(transcript: &Transcript, reaction: &Reaction) -> Option<usize> {
    let steps = reaction.steps.iter().map(|step| {
        let id = Removed::Step(step.step.id.clone());
        transcript.removed().get(&id).copied()
    });
    let removed: Option<Vec<usize>> = steps.collect();
    removed?.into_iter().max()
}

fn rewound(removed: &[Option<usize>]) -> Vec<bool> {
    let mut rewound = vec![false; removed.len()];
    for (place, n_begun) in removed.iter().enumerate().rev() {
        let Some(n_begun) = *n_begun else { continue };
        let mut next = place + 1;
        // What came after it was gone by then, and what came after that.
        while next < n_begun.min(removed.len()) {
            match removed.get(next).copied().flatten() {
                Some(later) if later <= n_begun && rewound.get(next) == Some(&true) => {
                    next = later.max(next + 1);
                }
                Some(_) | None => break,
            }
        }
        if let Some(slot) = rewound.get_mut(place) {
            *slot = next >= n_begun.min(removed.len());
        }
    }
    rewound
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_removed_with_all_that_came_after_it_is_rewound() {
        for (removed, expected) in [
            (vec![None, None], vec![false, false]),
            (vec![None, Some(2)], vec![false, true]),
            (
                vec![None, Some(3), Some(3), None],
                vec![false, true, true, false],
            ),
            // One in the middle, while others stayed.
            (vec![None, Some(3), None], vec![false, false, false]),
            // Another answer, then the question itself.
            (
                vec![Some(3), Some(2), Some(3), None],
                vec![true, true, true, false],
            ),
            // What came after it went later.
            (vec![Some(2), Some(3), None], vec![false, false, false]),
        ] {
            assert_eq!(rewound(&removed), expected, "{removed:?}");
        }
    }
}
