//! The groups of an aggregation with few groups and short keys.

use std::borrow::Cow;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayData, ArrayRef, AsArray, StringViewArray, make_array};
use datafusion::arrow::buffer::{Buffer, NullBuffer, ScalarBuffer};
use datafusion::arrow::datatypes::DataType;
use datafusion::error::Result;

/// The most keys of an aggregation.
pub(super) const KEYS_MAX: usize = 4;

/// The most groups. With more, their states would not stay in the caches of a processor.
const GROUPS_MAX: usize = 4096;

/// The number of slots of the hash table: a power of two, and so many that few keys are not in their first slot.
const SLOTS: usize = 4 * GROUPS_MAX;

/// The most slots that are looked at for a key, so that keys with equal hashes cost little.
const PROBES_MAX: usize = 32;

/// The most bytes of a text that is whole in its view.
const TEXT_BYTES_MAX: u32 = 12;

/// Stands for NULL: neither a view of so short a text nor a value of 64 bits.
const NULL: u128 = u128::MAX;

/// Whether keys of a type can be compared as integers.
pub(super) fn is_supported(key: &DataType) -> bool {
    match key {
        DataType::Utf8View => true,
        // Equal values may differ in their bits, as zeros do.
        DataType::Float16 | DataType::Float32 | DataType::Float64 | DataType::Interval(_) => false,
        _ => matches!(key.primitive_width(), Some(1 | 2 | 4 | 8)),
    }
}

/// The groups so far, by their keys. Groups are numbered in the order in which they first appear.
pub(super) struct GroupValues {
    /// The types of the keys.
    types: Vec<DataType>,
    /// The keys of all groups, one group after another.
    words: Vec<u128>,
    /// A hash table with open addressing: the number of a group, counted from 1, or 0 for a free slot.
    slots: Vec<u16>,
}

impl GroupValues {
    /// No groups yet, by keys of these types.
    pub(super) fn new(types: Vec<DataType>) -> Self {
        Self { types, words: Vec::new(), slots: vec![0; SLOTS] }
    }

    /// Finds the group of each row. Returns false if it is not made for these keys: texts are long, there are too many groups, or
    /// too many have similar hashes. The groups are then those before, and no more can be found.
    pub(super) fn intern(&mut self, keys: &[ArrayRef], groups: &mut Vec<usize>) -> bool {
        if !keys.iter().map(|key| key.data_type()).eq(&self.types) {
            return false;
        }
        let columns: Vec<_> = keys.iter().map(as_words).collect();
        let before = self.words.len();
        let are_found = match columns.as_slice() {
            [one] => self.find([one], groups),
            [one, two] => self.find([one, two], groups),
            [one, two, three] => self.find([one, two, three], groups),
            [one, two, three, four] => self.find([one, two, three, four], groups),
            _ => false,
        };
        if !are_found {
            self.words.truncate(before);
        }
        are_found
    }

    /// The number of groups.
    pub(super) fn len(&self) -> usize {
        self.words.len() / self.types.len()
    }

    /// The memory that it holds, in bytes.
    pub(super) fn size(&self) -> usize {
        size_of::<u128>() * self.words.capacity() + size_of::<u16>() * self.slots.capacity()
    }

    /// The keys of all groups, a column for each key.
    pub(super) fn into_arrays(self) -> Result<Vec<ArrayRef>> {
        let keys = self.types.len();
        let columns = self.types.iter().enumerate();
        let arrays = columns.map(|(column, data_type)| {
            let words = self.words.iter().skip(column).step_by(keys).copied();
            to_array(data_type, words.collect())
        });
        arrays.collect()
    }

    fn find<const KEYS: usize>(
        &mut self,
        columns: [&Cow<'_, [u128]>; KEYS],
        groups: &mut Vec<usize>,
    ) -> bool {
        let rows = columns[0].len();
        // All columns have as many rows, so that the loop needs no checks.
        let columns = columns.map(|column| &column[..rows]);
        groups.resize(rows, 0);
        for (row, place) in groups.iter_mut().enumerate() {
            let key = columns.map(|column| column[row]);
            let Some(group) = self.group_of(&key) else { return false };
            *place = group;
        }
        true
    }

    fn group_of<const KEYS: usize>(&mut self, key: &[u128; KEYS]) -> Option<usize> {
        let first = hash(key) as usize;
        for probe in 0..PROBES_MAX {
            let slot = &mut self.slots[(first + probe) % SLOTS];
            let (known, _) = self.words.as_chunks::<KEYS>();
            match usize::from(*slot).checked_sub(1) {
                Some(group) if are_equal(&known[group], key) => return Some(group),
                Some(_) => {}
                None if known.len() == GROUPS_MAX => return None,
                None if self.types.iter().zip(key).any(is_long_text) => return None,
                None => {
                    let group = known.len();
                    *slot = u16::try_from(group + 1).ok()?;
                    self.words.extend(key);
                    return Some(group);
                }
            }
        }
        None
    }
}

/// Compares integers in registers. Arrays would be compared as vectors, for which the key, just computed, is not in place yet.
fn are_equal<const KEYS: usize>(one: &[u128; KEYS], other: &[u128; KEYS]) -> bool {
    one.iter().zip(other).fold(0, |difference, (one, other)| difference | (one ^ other)) == 0
}

/// A number below that of slots.
fn hash<const KEYS: usize>(key: &[u128; KEYS]) -> u64 {
    const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;
    let hash = key.iter().fold(0_u64, |hash, &word| {
        let folded = word as u64 ^ ((word >> 64) as u64).rotate_left(29);
        (hash.rotate_left(23) ^ folded).wrapping_mul(FACTOR)
    });
    hash >> (u64::BITS - SLOTS.ilog2())
}

/// Whether a text is not whole in its view, which is then equal to no view of a short text.
fn is_long_text((key, &word): (&DataType, &u128)) -> bool {
    // The lower 32 bits of a view are the length of its text.
    *key == DataType::Utf8View && word != NULL && word as u32 > TEXT_BYTES_MAX
}

/// The values of a key as integers: those of short texts and of all other keys are equal where the values are.
fn as_words(key: &ArrayRef) -> Cow<'_, [u128]> {
    let words = match key.data_type() {
        DataType::Utf8View => Cow::Borrowed(&key.as_string_view().views()[..]),
        other => {
            let values = key.to_data();
            Cow::Owned(match other.primitive_width() {
                Some(1) => widened(values.buffer::<u8>(0), key.len()),
                Some(2) => widened(values.buffer::<u16>(0), key.len()),
                Some(4) => widened(values.buffer::<u32>(0), key.len()),
                _ => widened(values.buffer::<u64>(0), key.len()),
            })
        }
    };
    match key.nulls().filter(|nulls| nulls.null_count() > 0) {
        None => words,
        Some(nulls) => {
            let words = words.iter().zip(nulls);
            words.map(|(&word, is_valid)| if is_valid { word } else { NULL }).collect()
        }
    }
}

fn widened<T: Copy + Into<u128>>(values: &[T], rows: usize) -> Vec<u128> {
    values[..rows].iter().map(|&value| value.into()).collect()
}

/// The values of integers that [`as_words`] made.
fn to_array(data_type: &DataType, words: Vec<u128>) -> Result<ArrayRef> {
    let nulls = NullBuffer::from_iter(words.iter().map(|&word| word != NULL));
    let nulls = Some(nulls).filter(|nulls| nulls.null_count() > 0);
    let values = words.iter().map(|&word| if word == NULL { 0 } else { word });
    let Some(width) = data_type.primitive_width() else {
        let views = ScalarBuffer::from(values.collect::<Vec<_>>());
        return Ok(Arc::new(StringViewArray::try_new(views, Vec::new(), nulls)?));
    };
    let bytes = values.flat_map(|word| word.to_le_bytes().into_iter().take(width));
    let array = ArrayData::builder(data_type.clone())
        .len(words.len())
        .nulls(nulls)
        .add_buffer(Buffer::from_vec(bytes.collect::<Vec<u8>>()))
        .align_buffers(true)
        .build()?;
    Ok(make_array(array))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use datafusion::arrow::array::{Int16Array, Int32Array, TimestampSecondArray};

    use super::*;

    fn texts(texts: &[Option<&str>]) -> ArrayRef {
        Arc::new(texts.iter().copied().collect::<StringViewArray>())
    }

    fn numbers(numbers: impl IntoIterator<Item = Option<i16>>) -> ArrayRef {
        Arc::new(numbers.into_iter().collect::<Int16Array>())
    }

    /// No groups by keys of the types of these.
    fn values(keys: &[ArrayRef]) -> GroupValues {
        GroupValues::new(keys.iter().map(|key| key.data_type().clone()).collect())
    }

    #[test]
    fn groups_are_numbered_in_the_order_of_their_first_rows() {
        let first = [
            texts(&[Some("b"), None, Some("b"), Some(""), Some("twelve bytes"), None]),
            numbers([Some(1), Some(-1), Some(1), None, Some(1), None]),
        ];
        let (mut values, mut groups) = (values(&first), Vec::new());
        assert!(values.intern(&first, &mut groups));
        assert_eq!(groups, [0, 1, 0, 2, 3, 4]);
        let second = [
            texts(&[Some("twelve bytes"), Some("twelve byteS"), None]),
            numbers([Some(1), Some(1), Some(-1)]),
        ];
        assert!(values.intern(&second, &mut groups));
        assert_eq!(groups, [3, 5, 1]);
        let keys = [
            texts(&[Some("b"), None, Some(""), Some("twelve bytes"), None, Some("twelve byteS")]),
            numbers([Some(1), Some(-1), None, Some(1), None, Some(1)]),
        ];
        assert_eq!(values.into_arrays().unwrap(), keys);
    }

    #[test]
    fn slices_are_read_from_their_first_row() {
        let times = TimestampSecondArray::from(vec![Some(9), Some(7), None, Some(7)]);
        let times: ArrayRef = Arc::new(times.with_timezone("+01:00"));
        let keys = [times.slice(1, 3), texts(&[Some("x"), None, None, Some("x")]).slice(0, 3)];
        let (mut values, mut groups) = (values(&keys), Vec::new());
        assert!(values.intern(&keys, &mut groups));
        assert_eq!(groups, [0, 1, 2]);
        assert_eq!(values.into_arrays().unwrap(), keys);
    }

    #[test]
    fn rows_that_are_refused_leave_no_groups() {
        let both = |from: i16, to: i16| {
            let keys = || numbers((from..to).map(Some));
            [keys(), keys()]
        };
        let groups_max = GROUPS_MAX as i16;
        let (mut values, mut groups) = (values(&both(0, 0)), Vec::new());
        assert!(values.intern(&both(0, groups_max), &mut groups));
        assert!(!values.intern(&both(groups_max - 9, groups_max + 1), &mut groups));
        assert_eq!(values.into_arrays().unwrap(), both(0, groups_max));

        let short = [texts(&[Some("b"), Some("a")])];
        let mut values = super::tests::values(&short);
        assert!(values.intern(&short, &mut groups));
        assert!(!values.intern(&[texts(&[Some("c"), Some("thirteen byte")])], &mut groups));
        assert_eq!(values.into_arrays().unwrap(), short);
    }

    #[test]
    fn keys_of_another_type_are_refused() {
        let mut values = values(&[texts(&[])]);
        assert!(!values.intern(&[numbers([Some(1)])], &mut Vec::new()));
        assert_eq!(values.len(), 0);
    }

    #[test]
    fn many_keys_with_similar_hashes_are_refused() {
        // Found by trying.
        let alike = (0_u32..).filter(|&key| hash(&[u128::from(key)]) == 7).take(PROBES_MAX + 1);
        let alike: ArrayRef = Arc::new(alike.map(|key| key as i32).collect::<Int32Array>());
        let (mut values, mut groups) = (values(&[Arc::clone(&alike)]), Vec::new());
        assert!(values.intern(&[alike.slice(0, PROBES_MAX)], &mut groups));
        assert_eq!(values.len(), PROBES_MAX);
        assert!(!values.intern(&[alike], &mut groups));
        assert_eq!(values.len(), PROBES_MAX);
    }
}
