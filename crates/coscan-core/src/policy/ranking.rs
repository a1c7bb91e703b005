//! The classes of chunks with the highest scores, found without scoring all of them.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::iter::Peekable;

use crate::classes::Class;

/// A score: larger is better. Ties are resolved in favour of the class that was seen first. Scores may be negative
/// (error 4 in `docs/papers.md`).
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Score(pub(super) f64);

impl Eq for Score {}

impl Ord for Score {
    fn cmp(&self, other: &Self) -> Ordering {
        // Adding 0.0 makes 0.0 of -0.0: a bound of one is not above a score of the other.
        (self.0 + 0.0).total_cmp(&(other.0 + 0.0))
    }
}

impl PartialOrd for Score {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A score by two counts of scans, the second of which only breaks ties.
pub(super) fn first_second(first: usize, second: usize) -> Score {
    const SCANS_MAX: f64 = 65_536.0; // More than run at once.
    Score(first as f64 * SCANS_MAX + second as f64)
}

/// Classes that a decision looks at: the bound on its cost. They come in the order that the scores favour, so the others
/// are seldom better.
pub(super) const CLASSES_MAX: usize = 256;

/// Classes, highest score first. `classes` come in the order of how many scans need them. `bound` gives the highest
/// possible score of a class that a number of scans need, and of all classes after it. The walk ends as soon as no
/// better class can follow.
pub(super) fn best_first<'a>(
    classes: impl Iterator<Item = &'a Class> + 'a,
    bound: impl Fn(usize) -> Score + 'a,
    score: impl Fn(&'a Class) -> Option<Score> + 'a,
) -> impl Iterator<Item = (Score, &'a Class)> + 'a {
    BestFirst {
        classes: classes.take(CLASSES_MAX).enumerate().peekable(),
        bound,
        score,
        found: BinaryHeap::new(),
    }
}

struct BestFirst<'a, C: Iterator<Item = (usize, &'a Class)>, B, S> {
    classes: Peekable<C>,
    bound: B,
    score: S,
    found: BinaryHeap<Found<'a>>,
}

struct Found<'a> {
    score: Score,
    position: usize,
    class: &'a Class,
}

impl Ord for Found<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.score, other.position).cmp(&(other.score, self.position))
    }
}

impl PartialOrd for Found<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Found<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Found<'_> {}

impl<'a, C, B, S> Iterator for BestFirst<'a, C, B, S>
where
    C: Iterator<Item = (usize, &'a Class)>,
    B: Fn(usize) -> Score,
    S: Fn(&'a Class) -> Option<Score>,
{
    type Item = (Score, &'a Class);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let next = self.classes.peek().map(|(_, class)| (self.bound)(class.key().scans.len()));
            let best = self.found.peek().map(|found| found.score);
            if best.is_some() && best >= next {
                break;
            }
            let Some((position, class)) = self.classes.next() else { break };
            if let Some(score) = (self.score)(class) {
                self.found.push(Found { score, position, class });
            }
        }
        self.found.pop().map(|found| (found.score, found.class))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_that_scores_minus_zero_reaches_a_bound_of_zero() {
        let (minus, zero) = (Score(-0.0), Score(0.0));
        assert_eq!(minus.cmp(&zero), Ordering::Equal, "else every class behind it is scored, too");
        assert!(Score(-1.0) < minus && Score(f64::NEG_INFINITY) < minus && zero < Score(1.0));
    }
}
