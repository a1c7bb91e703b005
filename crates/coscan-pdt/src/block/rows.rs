//! A set of rows of one block: a sorted list while they are few, then a bitmap.

use std::ops::Range;

use super::BLOCK_ROWS;

/// Words of a bitmap of a block.
const WORDS: usize = (BLOCK_ROWS / 64) as usize;

/// The most rows of a list: as many as take the bytes of a bitmap.
const LISTED_MAX: usize = WORDS * 4;

/// Some rows of a block, each by its offset in it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum BlockRows {
    /// Ascending.
    Listed(Vec<u16>),
    /// Row `i` is bit `i % 64` of word `i / 64`.
    Mapped(Box<[u64; WORDS]>),
}

impl Default for BlockRows {
    fn default() -> Self {
        Self::Listed(Vec::new())
    }
}

impl BlockRows {
    /// The set of some ascending rows.
    pub(crate) fn from_sorted(rows: &[u16]) -> Self {
        if rows.len() <= LISTED_MAX {
            return Self::Listed(rows.to_vec());
        }
        let mut words = Box::new([0; WORDS]);
        rows.iter().for_each(|row| words[usize::from(row / 64)] |= bit(*row));
        Self::Mapped(words)
    }

    pub(crate) fn len(&self) -> usize {
        self.count_before(BLOCK_ROWS)
    }

    /// The heap memory in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        match self {
            Self::Listed(rows) => size_of_val(&**rows),
            Self::Mapped(words) => size_of_val(&**words),
        }
    }

    pub(crate) fn contains(&self, row: u16) -> bool {
        match self {
            Self::Listed(rows) => rows.binary_search(&row).is_ok(),
            Self::Mapped(words) => words[usize::from(row / 64)] & bit(row) != 0,
        }
    }

    /// Adds a row. Returns whether it is new.
    pub(crate) fn insert(&mut self, row: u16) -> bool {
        match self {
            Self::Listed(rows) => {
                let Err(at) = rows.binary_search(&row) else { return false };
                rows.insert(at, row);
                if rows.len() > LISTED_MAX {
                    *self = Self::from_sorted(rows);
                }
                true
            }
            Self::Mapped(words) => {
                let word = &mut words[usize::from(row / 64)];
                let is_new = *word & bit(row) == 0;
                *word |= bit(row);
                is_new
            }
        }
    }

    /// The number of rows before an offset, which may be the end of the block.
    pub(crate) fn count_before(&self, end: u64) -> usize {
        match self {
            Self::Listed(rows) => rows.partition_point(|row| u64::from(*row) < end),
            Self::Mapped(words) => {
                let whole = (end / 64) as usize;
                let ones = |word: &u64| word.count_ones() as usize;
                let part = words.get(whole).map_or(0, |word| ones(&(word & low_bits(end % 64))));
                words[..whole.min(WORDS)].iter().map(ones).sum::<usize>() + part
            }
        }
    }

    /// The rows in a range of offsets, ascending.
    pub(crate) fn iter(&self, range: Range<u64>) -> impl Iterator<Item = u16> {
        let (listed, words): (&[u16], &[u64]) = match self {
            Self::Listed(rows) => {
                let border = |end: u64| rows.partition_point(|row| u64::from(*row) < end);
                (&rows[border(range.start)..border(range.end)], &[])
            }
            Self::Mapped(words) => (&[], &words[..]),
        };
        let numbers = range.start / 64..range.end.div_ceil(64).min(words.len() as u64);
        let mapped = numbers.flat_map(move |number| {
            let inside = inside(number * 64, &range);
            ones(words[number as usize] & inside).map(move |bit| (number * 64 + bit) as u16)
        });
        listed.iter().copied().chain(mapped)
    }

    /// Sets the bits of the rows in a range of offsets. Bit 0 of `out` is row `first`, which is a multiple of 64 of rows of
    /// the file, as the start of this block `start` is.
    pub(crate) fn set_bits(&self, range: Range<u64>, start: u64, first: u64, out: &mut [u64]) {
        match self {
            Self::Listed(_) => {
                for row in self.iter(range) {
                    let at = start + u64::from(row) - first;
                    out[(at / 64) as usize] |= 1 << (at % 64);
                }
            }
            Self::Mapped(words) => {
                for number in range.start / 64..range.end.div_ceil(64) {
                    let at = (start + number * 64 - first) / 64;
                    out[at as usize] |= words[number as usize] & inside(number * 64, &range);
                }
            }
        }
    }

    /// The rows that another set does not have, ascending.
    pub(crate) fn minus<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = u16> + 'a {
        // Most blocks that are compared have the same deleted rows.
        let end = if self == other { 0 } else { BLOCK_ROWS };
        self.iter(0..end).filter(|row| !other.contains(*row))
    }

    /// The first row that is in both sets.
    pub(crate) fn first_common(&self, other: &Self) -> Option<u16> {
        let (few, many) = if self.len() <= other.len() { (self, other) } else { (other, self) };
        few.iter(0..BLOCK_ROWS).find(|row| many.contains(*row))
    }
}

/// The bits of the word that begins at offset `start` which are in a range.
fn inside(start: u64, range: &Range<u64>) -> u64 {
    let from = range.start.saturating_sub(start).min(64);
    let to = range.end.saturating_sub(start).min(64);
    low_bits(to) & !low_bits(from)
}

/// The lowest bits of a word, up to all 64.
fn low_bits(count: u64) -> u64 {
    if count >= 64 { u64::MAX } else { (1 << count) - 1 }
}

fn bit(row: u16) -> u64 {
    1 << (row % 64)
}

/// The numbers of the bits that are set.
fn ones(mut word: u64) -> impl Iterator<Item = u64> {
    std::iter::from_fn(move || {
        let bit = (word != 0).then(|| u64::from(word.trailing_zeros()))?;
        word &= word - 1;
        Some(bit)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_set_of_rows_is_a_set_whether_listed_or_mapped(
            rows in prop::collection::vec(0..BLOCK_ROWS as u16, 0..40),
            others in prop::collection::vec(0..BLOCK_ROWS as u16, 0..10),
            ends in (0..=BLOCK_ROWS, 0..=BLOCK_ROWS),
        ) {
            let (mut set, mut model) = (BlockRows::default(), BTreeSet::new());
            for row in rows {
                prop_assert_eq!(set.insert(row), model.insert(row));
            }
            prop_assert_eq!(set.len(), model.len());
            let range = ends.0.min(ends.1)..ends.0.max(ends.1);
            let inside: Vec<u16> =
                model.iter().copied().filter(|row| range.contains(&u64::from(*row))).collect();
            prop_assert_eq!(set.iter(range.clone()).collect::<Vec<_>>(), &inside[..]);
            let before = model.iter().filter(|row| u64::from(**row) < range.start).count();
            prop_assert_eq!(set.count_before(range.start), before);
            prop_assert!((0..BLOCK_ROWS as u16).all(|row| set.contains(row) == model.contains(&row)));

            // A bitmap that begins a word before the block.
            let mut bits = [0; WORDS + 1];
            set.set_bits(range, BLOCK_ROWS, BLOCK_ROWS - 64, &mut bits);
            let set_bits: Vec<u16> = (0..bits.len() as u64 * 64)
                .filter(|at| bits[(at / 64) as usize] >> (at % 64) & 1 == 1)
                .map(|at| (at - 64) as u16)
                .collect();
            prop_assert_eq!(set_bits, inside);

            let mut other = BlockRows::default();
            for row in &others {
                other.insert(*row);
            }
            let common = others.iter().copied().filter(|row| model.contains(row)).min();
            prop_assert_eq!(set.first_common(&other), common);
            prop_assert_eq!(other.first_common(&set), common);
            let more: Vec<u16> = model.iter().copied().filter(|row| !others.contains(row)).collect();
            prop_assert_eq!(set.minus(&other).collect::<Vec<_>>(), more);
        }
    }
}
