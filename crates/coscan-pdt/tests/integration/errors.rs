//! Changes that are refused.

use coscan_pdt::*;

type Version = FileChanges<&'static str>;

#[test]
fn a_row_that_is_not_there_cannot_be_changed() {
    let mut version = Version::new(4);
    version.delete(Sid(1)).unwrap();
    let out_of_range = Error::RowOutOfRange { row: Sid(4), row_count: 4 };
    assert_eq!(version.delete(Sid(4)), Err(out_of_range));
    assert_eq!(version.patch(Sid(4), 0, "a"), Err(out_of_range));
    assert_eq!(version.delete(Sid(1)), Err(Error::RowDeleted(Sid(1))));
    assert_eq!(version.patch(Sid(1), 0, "a"), Err(Error::RowDeleted(Sid(1))));
    assert_eq!(version.delete(InsertId(3)), Err(Error::NoSuchInsert(InsertId(3))));
    assert_eq!(version.patch(InsertId(3), 0, "a"), Err(Error::NoSuchInsert(InsertId(3))));
    assert_eq!(version.counts(), ChangeCounts { deleted: 1, ..ChangeCounts::default() });
}

#[test]
fn an_insert_needs_an_id_of_its_own_and_a_place() {
    let mut version = Version::new(4);
    let before = |id, sid| Insert::new(InsertId(id), Place::Before(Sid(sid)), ["a", "b"]);
    let out_of_range = Error::RowOutOfRange { row: Sid(4), row_count: 4 };
    assert_eq!(version.insert(before(1, 4)), Err(out_of_range));
    version.insert(before(1, 3)).unwrap();
    assert_eq!(version.insert(before(1, 2)), Err(Error::InsertExists(InsertId(1))));
    let no_column = Error::NoSuchColumn { id: InsertId(1), column: 2, columns: 2 };
    assert_eq!(version.patch(InsertId(1), 2, "c"), Err(no_column));
    version.delete(InsertId(1)).unwrap();
    assert_eq!(version.delete(InsertId(1)), Err(Error::NoSuchInsert(InsertId(1))));
    assert!(version.insert_of(InsertId(1)).is_none());
    // Before a row that was deleted is a place, too.
    version.delete(Sid(3)).unwrap();
    version.insert(before(2, 3)).unwrap();
    assert_eq!(version.insert_of(InsertId(2)).unwrap().row()[..], ["a", "b"]);
}

#[test]
fn a_deletion_vector_is_ascending_and_in_the_file() {
    let error = |rows: &[u64]| Version::from_deleted(10, rows.iter().copied()).unwrap_err();
    assert_eq!(error(&[3, 10]), Error::RowOutOfRange { row: Sid(10), row_count: 10 });
    assert_eq!(error(&[3, 3]), Error::NotAscending(Sid(3)));
    assert_eq!(error(&[3, 2]), Error::NotAscending(Sid(2)));
    assert!(Version::from_deleted(10, []).unwrap().is_empty());
    let far = Version::from_deleted(u64::MAX, [0, 1 << 40, u64::MAX - 1]).unwrap();
    assert_eq!(far.visible_rows(), u64::MAX - 3);
    assert_eq!(far.rid_of_sid(Sid(u64::MAX - 2)), Some(Rid(u64::MAX - 4)));
    assert_eq!(far.row_at_rid(Rid(u64::MAX - 4)), Some(Sid(u64::MAX - 2).into()));
}
