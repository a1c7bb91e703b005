//! Coalesces byte ranges into requests, and cuts answers into ranges.

use std::ops::Range;

use bytes::Bytes;

/// The largest gap between ranges of one file that are read in one request. On disks and object stores alike a second
/// request costs more than 64 KiB.
pub const COALESCE_GAP_BYTES: u64 = 64 * 1024;

/// Groups ranges of one file, ascending by start, into requests: neighbours that do not overlap, with gaps of at most
/// [`COALESCE_GAP_BYTES`], as long as first and last span at most `bytes_max` bytes. Returns the positions of each
/// group among the ranges.
#[must_use]
pub fn coalesce(ranges: &[Range<u64>], bytes_max: u64) -> Vec<Range<usize>> {
    let mut groups: Vec<Range<usize>> = Vec::new();
    for (position, range) in ranges.iter().enumerate() {
        let fits = |group: &&mut Range<usize>| {
            let gap_bytes = range.start.checked_sub(ranges[group.end - 1].end);
            gap_bytes.is_some_and(|bytes| bytes <= COALESCE_GAP_BYTES)
                && range.end - ranges[group.start].start <= bytes_max
        };
        match groups.last_mut().filter(fits) {
            Some(group) => group.end = position + 1,
            None => groups.push(position..position + 1),
        }
    }
    groups
}

/// The fewest requests that cover `ranges`, in ascending order. Empty ranges need no request.
pub(super) fn merge(ranges: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut sorted: Vec<Range<u64>> =
        ranges.iter().filter(|range| !range.is_empty()).cloned().collect();
    sorted.sort_unstable_by_key(|range| range.start);
    let mut disjoint: Vec<Range<u64>> = Vec::with_capacity(sorted.len());
    for range in sorted {
        match disjoint.last_mut().filter(|last| range.start < last.end) {
            Some(last) => last.end = last.end.max(range.end),
            None => disjoint.push(range),
        }
    }
    let groups = coalesce(&disjoint, u64::MAX).into_iter();
    groups.map(|group| disjoint[group.start].start..disjoint[group.end - 1].end).collect()
}

/// Cuts `ranges` out of the `answers` to the requests in `merged`, without copying.
///
/// A short answer gives short slices; the caller decides whether that is an error.
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

/// A byte count as an index into memory, saturated: memory is not larger.
pub(super) fn to_usize(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init, reason = "one range is what is meant")]
mod tests {
    use super::*;

    const GAP: u64 = COALESCE_GAP_BYTES;

    #[test]
    fn neighbours_share_a_request_up_to_the_gap_and_the_size() {
        let near = [0..10, 10..20, 20 + GAP..30 + GAP];
        assert_eq!(coalesce(&near, 30 + GAP), [0..3]);
        assert_eq!(coalesce(&near, 29 + GAP), [0..2, 2..3]);
        assert_eq!(coalesce(&near, 0), [0..1, 1..2, 2..3]);
        assert_eq!(coalesce(&[0..10, 11 + GAP..20 + GAP], u64::MAX), [0..1, 1..2]);
        assert_eq!(coalesce(&[0..10, 9..20], u64::MAX), [0..1, 1..2], "they overlap");
        assert!(coalesce(&[], u64::MAX).is_empty());
    }

    #[test]
    fn requests_cover_all_ranges_and_do_not_overlap() {
        assert_eq!(merge(&[10 + GAP..40 + GAP, 0..10]), [0..40 + GAP]);
        assert_eq!(merge(&[11 + GAP..40 + GAP, 0..10]), [0..10, 11 + GAP..40 + GAP]);
        assert_eq!(merge(&[0..50, 10..20, 7..7, 40..60]), [0..60]);
        assert!(merge(&[3..3]).is_empty());
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
