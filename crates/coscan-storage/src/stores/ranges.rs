//! Byte ranges into requests and answers back into ranges.

use std::ops::Range;

use bytes::Bytes;

/// Ranges of one file with at most this many bytes between them are read as one request.
///
/// Reading 64 KiB too much costs a disk less than a second request does.
pub const COALESCE_GAP_BYTES: u64 = 64 * 1024;

/// The requests that cover `ranges`: sorted, disjoint, more than `gap_bytes` apart.
/// Empty ranges need no request.
pub(super) fn merge(ranges: &[Range<u64>], gap_bytes: u64) -> Vec<Range<u64>> {
    let mut sorted: Vec<Range<u64>> =
        ranges.iter().filter(|range| !range.is_empty()).cloned().collect();
    sorted.sort_unstable_by_key(|range| range.start);

    let mut merged: Vec<Range<u64>> = Vec::with_capacity(sorted.len());
    for range in sorted {
        match merged.last_mut() {
            Some(last) if range.start <= last.end.saturating_add(gap_bytes) => {
                last.end = last.end.max(range.end);
            }
            _ => merged.push(range),
        }
    }
    merged
}

/// Cuts `ranges` out of the `answers` to the requests in `merged`, without copying.
///
/// A short answer gives short slices: whether that is an error is the caller's to say.
pub(super) fn cut(ranges: &[Range<u64>], merged: &[Range<u64>], answers: &[Bytes]) -> Vec<Bytes> {
    ranges
        .iter()
        .map(|range| {
            if range.is_empty() {
                return Bytes::new();
            }
            // `merged` covers `ranges`, so the request that starts at or before this range exists.
            let index = merged.partition_point(|request| request.start <= range.start) - 1;
            let answer = &answers[index];
            let start = to_usize(range.start - merged[index].start).min(answer.len());
            let end = to_usize(range.end - merged[index].start).min(answer.len());
            answer.slice(start..end)
        })
        .collect()
}

/// A byte count as an index into memory. Saturates where memory cannot be that large anyway.
pub(super) fn to_usize(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init, reason = "one range is what is meant")]
mod tests {
    use super::*;

    #[test]
    fn merges_up_to_the_gap_and_not_beyond() {
        assert_eq!(merge(&[30..40, 0..10], 20), vec![0..40]);
        assert_eq!(merge(&[31..40, 0..10], 20), vec![0..10, 31..40]);
        assert_eq!(merge(&[0..50, 10..20, 7..7], 0), vec![0..50]);
    }

    #[test]
    fn cuts_what_was_asked_in_the_order_asked() {
        let ranges = [8..10, 0..2, 5..5];
        let answers = [Bytes::from_static(b"ab"), Bytes::from_static(b"ij")];
        let cut = cut(&ranges, &[0..2, 8..10], &answers);
        assert_eq!(cut, vec!["ij", "ab", ""]);
    }

    #[test]
    fn a_short_answer_gives_short_slices() {
        let answers = [Bytes::from_static(b"abc")];
        let cut = cut(&[0..2, 2..5, 4..6], &[0..6], &answers);
        assert_eq!(cut, vec!["ab", "c", ""]);
    }
}
