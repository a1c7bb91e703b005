//! What scans see: each row once, whatever the chunks, and at the position that the version says.

use std::collections::BTreeSet;

use coscan_pdt::*;
use proptest::prelude::*;

use super::model::*;

proptest! {
    #[test]
    fn each_row_is_seen_once_whatever_the_chunks(
        row_count in row_counts(),
        changes in changes(200),
        ends in prop::collection::vec(0..10_000_u64, 0..12),
    ) {
        let (mut version, mut model) = (Version::new(row_count), Model::new(row_count));
        apply_all(&mut version, &mut model, &changes, &mut 0);
        prop_assert_eq!(scan_chunks(&version, &ends, &stored), model.visible());
    }

    #[test]
    fn rids_count_the_rows_that_are_seen(row_count in row_counts(), changes in changes(200)) {
        let (mut version, mut model) = (Version::new(row_count), Model::new(row_count));
        let mut next = 0;
        apply_all(&mut version, &mut model, &changes, &mut next);
        let visible = model.visible();
        for (rid, (row, ..)) in (0..).map(Rid).zip(&visible) {
            prop_assert_eq!(version.row_at_rid(rid), Some(*row));
            prop_assert_eq!(version.rid_of(*row), Some(rid));
        }
        let rows = visible.len() as u64;
        prop_assert_eq!(version.visible_rows(), rows);
        prop_assert_eq!(version.row_at_rid(Rid(rows)), None);
        prop_assert_eq!(version.row_at_rid(Rid(u64::MAX)), None);

        let names = (0..=row_count).map(|sid| Sid(sid).into());
        let seen: BTreeSet<RowId> = visible.iter().map(|(row, ..)| *row).collect();
        for row in names.chain((0..=next).map(|id| InsertId(id).into())) {
            prop_assert_eq!(version.is_visible(row), seen.contains(&row));
            prop_assert_eq!(version.is_visible(row), version.rid_of(row).is_some());
        }
    }

    #[test]
    fn counts_are_those_of_the_changes(row_count in row_counts(), changes in changes(200)) {
        let (mut version, mut model) = (Version::new(row_count), Model::new(row_count));
        apply_all(&mut version, &mut model, &changes, &mut 0);
        let file = version.range(Sid(0)..Sid(row_count));
        let expected = ChangeCounts {
            deleted: file.deleted().count() as u64,
            inserted: file.inserts().chain(version.tail()).count() as u64,
            patched: (0..COLUMNS).map(|column| file.patches(column).count() as u64).sum(),
        };
        prop_assert_eq!(version.counts(), expected);
        prop_assert_eq!(version.is_empty(), expected == ChangeCounts::default());
    }

    #[test]
    fn a_deletion_vector_is_the_same_as_single_deletes(
        row_count in row_counts(),
        rows in prop::collection::btree_set(0..10_000_u64, 0..300),
    ) {
        let rows: Vec<u64> = rows.into_iter().filter(|row| *row < row_count).collect();
        let mut version = Version::new(row_count);
        rows.iter().for_each(|row| version.delete(Sid(*row)).unwrap());
        let at_once = Version::from_deleted(row_count, rows.iter().copied()).unwrap();
        prop_assert_eq!(at_once.counts(), version.counts());
        prop_assert_eq!(
            scan_chunks(&at_once, &[100, 200], &stored),
            scan_chunks(&version, &[100, 200], &stored)
        );
    }
}

#[test]
fn a_range_beyond_the_file_ends_with_it_and_a_reversed_one_is_empty() {
    let mut version = Version::new(10);
    version.delete(Sid(9)).unwrap();
    version.insert(Insert::sorted(InsertId(1), Place::Tail, 0, [1, 2, 3])).unwrap();
    assert_eq!(version.range(Sid(8)..Sid(99)).rows(), Sid(8)..Sid(10));
    assert_eq!(version.range(Sid(8)..Sid(99)).visible_rows(), 1);
    #[allow(clippy::reversed_empty_ranges)]
    let reversed = version.range(Sid(9)..Sid(3));
    assert!(reversed.is_empty() && reversed.deleted_mask().is_none());
    assert_eq!(version.visible_rows_in(Sid(20)..Sid(30)), 0);
    assert_eq!(version.visible_rows_in(Sid(0)..Sid(30)), 9);
}

#[test]
fn many_inserts_before_one_row_and_at_the_end_keep_their_order() {
    let mut version = Version::new(5_000);
    for id in 0..3_000 {
        let place = if id % 3 == 0 { Place::Tail } else { Place::Before(Sid(4_999)) };
        // Keys run against ids.
        let key = 250 - (id / 12) as u8;
        version.insert(Insert::sorted(InsertId(id), place, key, [id as i64; 3])).unwrap();
    }
    let inserts: Vec<_> = version.range(Sid(4_999)..Sid(5_000)).inserts().collect();
    assert_eq!(inserts.len(), 2_000);
    assert!(inserts.is_sorted_by_key(|insert| (*insert.sort_key(), insert.id())));
    assert!(version.tail().is_sorted_by_key(|insert| (*insert.sort_key(), insert.id())));
    for (rid, insert) in (4_999..).map(Rid).zip(inserts) {
        assert_eq!(version.row_at_rid(rid), Some(insert.id().into()));
    }
    assert_eq!(version.row_at_rid(Rid(6_999)), Some(Sid(4_999).into()));
    for id in (0..3_000).rev() {
        version.delete(InsertId(id)).unwrap();
    }
    assert!(version.is_empty());
}

#[test]
fn the_tail_is_read_from_any_position_on() {
    let mut version = FileChanges::<u32>::new(3);
    for id in 0..100 {
        version.insert(Insert::new(InsertId(id), Place::Tail, [id as u32])).unwrap();
    }
    version.delete(InsertId(7)).unwrap();
    for nth in 0..101 {
        let from = version.tail_from(nth).map(Insert::id);
        assert!(from.eq(version.tail().map(Insert::id).skip(nth as usize)), "{nth}");
    }
}

#[test]
fn changes_fit_any_file_that_has_the_rows() {
    let deleted = FileChanges::<u32>::from_deleted(u64::MAX, [1, 5_000]).unwrap();
    assert_eq!(deleted.with_row_count(5_001).unwrap().visible_rows(), 4_999);
    let error = Error::RowOutOfRange { row: Sid(5_000), row_count: 5_000 };
    assert_eq!(deleted.with_row_count(5_000).unwrap_err(), error);
    let mut version = FileChanges::<u32>::new(100);
    version.insert(Insert::new(InsertId(0), Place::Before(Sid(60)), [0])).unwrap();
    version.patch(Sid(70), 0, 1).unwrap();
    assert!(version.with_row_count(71).is_ok());
    let error = Error::RowOutOfRange { row: Sid(70), row_count: 70 };
    assert_eq!(version.with_row_count(70).unwrap_err(), error);
    version.delete(Sid(70)).unwrap();
    assert!(version.with_row_count(61).is_err());
}
