//! Single rules of transactions.

use coscan_database::{DataFile, Database, Error, TablePart, TableRowId};
use coscan_pdt::InsertId;

fn database() -> (Database<i64>, coscan_database::TableId) {
    let database = Database::default();
    let mut load = database.begin();
    let table = load.create_table("t", *b"").unwrap();
    load.add_file(table, database.new_file(), DataFile::new("t/0", 100)).unwrap();
    load.insert(table, [1, 2]).unwrap();
    load.commit().unwrap();
    (database, table)
}

#[test]
fn the_first_of_two_that_wrote_the_same_row_commits() {
    for number in [5, 100] {
        let (database, table) = database();
        let (mut first, mut second) = (database.begin(), database.begin());
        let row = first.version(table).unwrap().row(number).unwrap();
        first.update(table, row, [(0, 7)]).unwrap();
        second.delete(table, row).unwrap();
        first.commit().unwrap();
        assert!(matches!(second.commit(), Err(Error::Conflict { .. })));
    }
}

#[test]
fn a_row_that_is_written_without_a_change_conflicts() {
    let (database, table) = database();
    let (mut first, mut second) = (database.begin(), database.begin());
    let row = first.version(table).unwrap().row(5).unwrap();
    first.update(table, row, []).unwrap();
    second.update(table, row, [(1, 3)]).unwrap();
    first.commit().unwrap();
    assert!(second.commit().is_err());
}

#[test]
fn what_is_rolled_back_conflicts_with_nothing() {
    let (database, table) = database();
    let (mut first, mut second) = (database.begin(), database.begin());
    let row = first.version(table).unwrap().row(5).unwrap();
    first.delete(table, row).unwrap();
    second.delete(table, row).unwrap();
    drop(first);
    second.commit().unwrap();
    assert_eq!(database.begin().version(table).unwrap().visible_rows(), 100);
}

#[test]
fn a_transaction_changes_what_it_has_inserted() {
    let (database, table) = database();
    let mut transaction = database.begin();
    transaction.add_file(table, database.new_file(), DataFile::new("t/1", 10)).unwrap();
    transaction.insert(table, [3, 4]).unwrap();
    let version = transaction.version(table).unwrap();
    assert_eq!(version.row_count(), 112);
    transaction.delete(table, version.row(105).unwrap()).unwrap();
    transaction.update(table, version.row(111).unwrap(), [(1, 40)]).unwrap();
    transaction.commit().unwrap();
    let version = database.begin().version(table).unwrap();
    assert_eq!(version.visible_rows(), 111);
    let last = version.inserted().tail().last().unwrap();
    assert_eq!(**last.row(), [3, 40]);
}

#[test]
fn a_dropped_table_is_seen_by_those_that_have_started() {
    let (database, table) = database();
    let mut started = database.begin();
    let mut dropping = database.begin();
    dropping.drop_table(table).unwrap();
    dropping.commit().unwrap();
    assert_eq!(started.version(table).unwrap().visible_rows(), 101);
    assert!(matches!(database.begin().version(table), Err(Error::NoSuchTable)));
    started.insert(table, [0, 0]).unwrap();
    assert!(matches!(started.commit(), Err(Error::NoSuchTable)));
    let mut again = database.begin();
    assert!(again.create_table("t", *b"").unwrap() > table);
    again.commit().unwrap();
}

#[test]
fn two_tables_have_two_names() {
    let (database, _) = database();

    let mut second = database.begin();
    assert!(matches!(second.create_table("t", *b""), Err(Error::TableExists(_))));
    let (mut one, mut other) = (database.begin(), database.begin());
    one.create_table("u", *b"").unwrap();
    other.create_table("u", *b"").unwrap();
    one.commit().unwrap();
    assert!(matches!(other.commit(), Err(Error::TableExists(_))));
    assert_eq!(database.tables().len(), 2);
}

#[test]
fn rows_that_a_transaction_does_not_see_cannot_be_changed() {
    let (database, table) = database();
    let mut transaction = database.begin();
    let later = TableRowId::Inserted(InsertId(1_000));
    assert!(matches!(transaction.delete(table, later), Err(Error::NoSuchRow(_))));
    let row = transaction.version(table).unwrap().row(5).unwrap();
    transaction.delete(table, row).unwrap();
    assert!(matches!(transaction.update(table, row, []), Err(Error::NoSuchRow(_))));
    assert_eq!(transaction.version(table).unwrap().row(102), None);
}

#[test]
fn reading_commits_nothing() {
    let (database, table) = database();
    let before = database.begin().lsn();
    let transaction = database.begin();
    transaction.version(table).unwrap();
    assert_eq!(transaction.commit().unwrap(), before);
}

#[test]
fn large_transactions_at_the_same_time_lose_nothing() {
    let database = Database::default();
    let mut load = database.begin();
    let table = load.create_table("t", *b"").unwrap();
    load.add_file(table, database.new_file(), DataFile::new("t/0", 8000)).unwrap();
    load.commit().unwrap();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let database = database.clone();
            scope.spawn(move || {
                for step in 0..4 {
                    let mut transaction = database.begin();
                    let version = transaction.version(table).unwrap();
                    for row in 0..250 {
                        let row = version.row(thread * 1000 + step * 250 + row).unwrap();
                        transaction.delete(table, row).unwrap();
                        transaction.insert(table, [1]).unwrap();
                    }
                    transaction.commit().unwrap();
                }
            });
        }
    });
    let version = database.begin().version(table).unwrap();
    assert_eq!((version.visible_rows(), version.inserted().visible_rows()), (8000, 8000));
}

#[test]
fn a_large_transaction_conflicts_like_a_small_one() {
    let (database, table) = database();
    let (mut large, mut small) = (database.begin(), database.begin());
    let version = large.version(table).unwrap();
    for number in 0..101 {
        large.delete(table, version.row(number).unwrap()).unwrap();
    }
    for _ in 0..300 {
        large.insert(table, [1, 2]).unwrap();
    }
    small.update(table, version.row(100).unwrap(), [(0, 1)]).unwrap();
    small.commit().unwrap();
    assert!(matches!(large.commit(), Err(Error::Conflict { .. })));
}

#[test]
fn a_table_is_replaced_with_its_rows_at_once() {
    let (database, table) = database();
    let before = database.begin();
    let mut replacing = database.begin();
    replacing.drop_table(table).unwrap();
    assert_eq!(replacing.version(table).unwrap().visible_rows(), 101);
    assert!(matches!(replacing.insert(table, [5, 6]), Err(Error::NoSuchTable)));
    let again = replacing.create_table("t", *b"").unwrap();
    replacing.insert(again, [5, 6]).unwrap();
    assert!(matches!(before.version(again), Err(Error::NoSuchTable)));
    replacing.commit().unwrap();
    assert_eq!(before.version(table).unwrap().visible_rows(), 101);
    let after = database.begin();
    assert_eq!(database.table("t").unwrap().id, again);
    assert_eq!(after.version(again).unwrap().visible_rows(), 1);
    assert!(matches!(after.version(table), Err(Error::NoSuchTable)));
}

#[test]
fn a_table_that_comes_and_goes_in_a_transaction_was_never_there() {
    let (database, _) = database();
    let mut transaction = database.begin();
    let table = transaction.create_table("u", *b"").unwrap();
    transaction.insert(table, [1, 1]).unwrap();
    transaction.drop_table(table).unwrap();
    transaction.commit().unwrap();
    assert_eq!(database.tables().len(), 1);
}

#[test]
fn a_row_that_is_inserted_during_a_checkpoint_stays_although_its_number_is_smaller() {
    let (database, table) = database();
    let (mut early, mut late) = (database.begin(), database.begin());
    early.insert(table, [3, 4, 0]).unwrap();
    late.insert(table, [5, 6, 0]).unwrap();
    late.commit().unwrap();
    let mut checkpoint = database.begin_checkpoint(table).unwrap();
    let part = TablePart { files: Vec::new(), inserted: true };
    let file = (database.new_file(), DataFile::new("t/1", 2));
    checkpoint.replace(&part, Some(file)).unwrap();
    early.commit().unwrap();
    checkpoint.start_commit(0).unwrap().wait().unwrap();
    let version = database.begin().version(table).unwrap();
    assert_eq!(version.visible_rows(), 103);
    assert_eq!(version.inserted().tail().count(), 1);
}

#[test]
fn a_checkpoint_has_the_rows_that_it_replaces_and_no_others() {
    let (database, table) = database();
    let version = database.begin().version(table).unwrap();
    let part = TablePart { files: vec![version.files()[0].id], inserted: true };
    let mut checkpoint = database.begin_checkpoint(table).unwrap();
    let file = |rows| Some((database.new_file(), DataFile::new("t/1", rows)));
    let wrong = checkpoint.replace(&part, file(100)).unwrap_err();
    assert!(matches!(wrong, Error::WrongRowCount { written: 100, expected: 101 }));
    checkpoint.replace(&part, file(101)).unwrap();
    assert!(checkpoint.replace(&part, file(101)).is_err(), "they are replaced already");
}

#[test]
fn of_two_checkpoints_of_a_file_one_replaces_it() {
    let (database, table) = database();
    let version = database.begin().version(table).unwrap();
    let part = TablePart { files: vec![version.files()[0].id], inserted: false };
    let begun = || {
        let mut checkpoint = database.begin_checkpoint(table).unwrap();
        let file = (database.new_file(), DataFile::new("t/1", 100));
        checkpoint.replace(&part, Some(file)).unwrap();
        checkpoint
    };
    let (one, other) = (begun(), begun());
    one.start_commit(0).unwrap().wait().unwrap();
    assert!(matches!(other.start_commit(0), Err(Error::NoSuchFile)));
    assert_eq!(database.begin().version(table).unwrap().files().len(), 1);
}

#[test]
fn a_retired_file_is_kept_for_its_time_and_for_those_who_read_it() {
    let (database, table) = database();
    let reader = database.begin();
    let old = reader.version(table).unwrap().files()[0].id;
    let mut checkpoint = database.begin_checkpoint(table).unwrap();
    let file = (database.new_file(), DataFile::new("t/1", 100));
    checkpoint.replace(&TablePart { files: vec![old], inserted: false }, Some(file)).unwrap();
    checkpoint.start_commit(10).unwrap().wait().unwrap();
    let forgotten = |before| {
        let (pending, forgotten) = database.forget_retired(before).unwrap();
        pending.wait().unwrap();
        forgotten.len()
    };
    assert_eq!(database.retired().iter().map(|file| file.id).collect::<Vec<_>>(), [old]);
    assert_eq!((forgotten(9), forgotten(10)), (0, 0), "the reader needs it");
    drop(reader);
    assert_eq!((forgotten(9), forgotten(10), forgotten(10)), (0, 1, 0));
    assert!(database.retired().is_empty());
}
