//! Checkpoints: a new file and the changes mapped to it have the rows that the old ones have.

use coscan_pdt::*;
use proptest::prelude::*;

use super::database::*;
use super::model::*;

/// The file that a checkpoint of a version writes: its rows.
fn fold(at: &Model) -> impl Fn(Sid) -> Vec<i64> + use<> {
    let rows: Vec<Vec<i64>> = at.visible().into_iter().map(|(_, _, values)| values).collect();
    move |sid| rows[sid.0 as usize].clone()
}

/// The rows of an old version by their new names.
fn renamed(model: &Model, map: &RowMap<i64, u8>) -> Vec<Seen> {
    let rename = |(row, key, values)| {
        let row = map.map_row(row).unwrap();
        (row, if matches!(row, RowId::Stable(_)) { 0 } else { key }, values)
    };
    model.visible().into_iter().map(rename).collect()
}

/// The rows that a version on the new file should have: those of the old one by their new names. Inserts that now have one
/// place stand by key and id there.
fn expected(model: &Model, map: &RowMap<i64, u8>, mapped: &Version) -> Vec<Seen> {
    let place = |seen: &Seen| match seen.0 {
        RowId::Insert(id) => mapped.insert_of(id).map(Insert::place),
        RowId::Stable(_) => None,
    };
    let mut rows = renamed(model, map);
    for run in rows.chunk_by_mut(|one, other| place(one).is_some() && place(one) == place(other)) {
        run.sort_by_key(|(row, key, _)| (*key, *row));
    }
    rows
}

fn all_writes(writes: &[Write]) -> WriteSet {
    writes.iter().map(Write::name).collect()
}

/// Applies changes that are possible to a transaction and to the model of what it sees. Returns them.
fn write(
    transaction: &mut Transaction<i64, u8>,
    model: &mut Model,
    changes: &[Change],
    next: &mut u64,
) -> Vec<Write> {
    let row_count = transaction.changes().row_count();
    let mut done = Vec::new();
    for change in changes {
        let write = change.resolve(row_count, next);
        let is_done = write.apply_in(transaction).is_ok();
        assert_eq!(is_done, model.apply(&write), "{write:?}");
        done.extend(is_done.then_some(write));
    }
    done
}

proptest! {
    #[test]
    fn a_new_file_with_mapped_changes_has_the_same_rows(
        row_count in row_counts(),
        before in changes(100),
        after in changes(60),
    ) {
        let (mut version, mut model) = (Version::new(row_count), Model::new(row_count));
        let mut next = 0;
        apply_all(&mut version, &mut model, &before, &mut next);
        let map = RowMap::new(&version);
        let file = fold(&model);
        prop_assert_eq!(map.row_count(), model.visible().len() as u64);
        prop_assert!(map.map_changes(&version).unwrap().is_empty());

        apply_all(&mut version, &mut model, &after, &mut next);
        let mapped = map.map_changes(&version).unwrap();
        prop_assert_eq!(
            scan_chunks(&mapped, &[50, 90], &file),
            expected(&model, &map, &mapped)
        );
    }

    #[test]
    fn a_transaction_goes_on_on_the_new_file(
        row_count in row_counts(),
        before in changes(60),
        between in changes(20),
        by_others in changes(20),
        by_it in changes(20),
        at_last in changes(20),
    ) {
        let (mut version, mut model) = (Version::new(row_count), Model::new(row_count));
        let mut next = 0;
        apply_all(&mut version, &mut model, &before, &mut next);
        let map = RowMap::new(&version);
        let file = fold(&model);

        // While the new file is written: a commit, then a transaction begins, another commits, and the switch comes.
        apply_all(&mut version, &mut model, &between, &mut next);
        let mut transaction = Transaction::new(&version);
        let mut sees = model.clone();
        let mut other = Transaction::new(&version);
        write(&mut other, &mut model, &by_others, &mut next);
        let wrote = write(&mut transaction, &mut sees, &by_it, &mut next);
        let (version, theirs) = other.into_parts();
        let latest = map.map_changes(&version).unwrap();
        let transaction = map.map_transaction(&transaction).unwrap();
        prop_assert_eq!(
            scan_chunks(transaction.changes(), &[], &file),
            expected(&sees, &map, transaction.changes())
        );

        // It goes on on the new file, and commits onto it.
        let conflicts = all_writes(&wrote).conflict(&theirs).is_some();
        let rebased = transaction.rebased(&latest, [&map.map_writes(&theirs)]);
        prop_assert_eq!(rebased.is_err(), conflicts);
        let Ok(mut rebased) = rebased else { return Ok(()) };
        wrote.iter().for_each(|write| assert!(model.apply(write)));
        prop_assert_eq!(
            scan_chunks(rebased.changes(), &[], &file),
            expected(&model, &map, rebased.changes())
        );
        for change in at_last {
            let write = change.resolve(map.row_count(), &mut next);
            if write.apply_in(&mut rebased).is_ok() {
                prop_assert!(rebased.writes().contains(write.name()));
            }
        }
    }

    #[test]
    fn two_files_become_one_whose_rest_is_a_tail_of_its_own(
        row_counts in [1..200_u64, 1..200_u64],
        before in [changes(60), changes(60)],
        after in [changes(40), changes(40)],
        by_it in changes(30),
    ) {
        let mut next = 0;
        let mut files = [0, 1].map(|i| (Version::new(row_counts[i]), Model::new(row_counts[i])));
        let without_tail = |change: &Change| !matches!(change, Change::Insert { .. });
        let of_first = |changes: &[Change]| changes.iter().filter(|c| without_tail(c)).cloned().collect::<Vec<_>>();
        apply_all(&mut files[0].0, &mut files[0].1, &of_first(&before[0]), &mut next);
        apply_all(&mut files[1].0, &mut files[1].1, &before[1], &mut next);
        let first = RowMap::new(&files[0].0);
        let second = RowMap::new(&files[1].0).starting_at(Sid(first.row_count()));
        let rows = |model: &Model| model.visible().into_iter().map(|(.., row)| row).collect::<Vec<_>>();
        let stored = [rows(&files[0].1), rows(&files[1].1)].concat();

        // Changes are carried in two steps: those until the last moment, and then the rest.
        let mut mapped = Version::new(stored.len() as u64);
        for ((version, model), (map, changes)) in
            files.iter_mut().zip([(&first, of_first(&after[0])), (&second, after[1].clone())])
        {
            let mut at = version.clone();
            for half in [&changes[..changes.len() / 2], &changes[changes.len() / 2..]] {
                apply_all(version, model, half, &mut next);
                map.carry(&at, version, &mut mapped).unwrap();
                at = version.clone();
            }
        }
        let file = |sid: Sid| stored[sid.0 as usize].clone();
        let all = |version: &Version| {
            let mut rows: Vec<_> = scan_chunks(version, &[], &file).into_iter().map(|(.., row)| row).collect();
            rows.sort();
            rows
        };
        let mut expected = [rows(&files[0].1), rows(&files[1].1)].concat();
        expected.sort();
        prop_assert_eq!(all(&mapped), expected);

        let mut old = Transaction::new(&files[1].0);
        write(&mut old, &mut files[1].1, &by_it, &mut next);
        let mut new = Transaction::new(&mapped);
        second.carry_transaction(&old, &mut new).unwrap();
        let mut expected = [rows(&files[0].1), rows(&files[1].1)].concat();
        expected.sort();
        prop_assert_eq!(all(new.changes()), expected);

        let (file_part, tail) = new.split_tail();
        prop_assert_eq!(tail.changes().row_count(), 0);
        prop_assert_eq!(tail.changes().tail().count(), new.changes().tail().count());
        prop_assert_eq!(file_part.changes().tail().count(), 0);
        for insert in new.changes().tail() {
            prop_assert_eq!(tail.changes().insert_of(insert.id()), Some(insert));
            prop_assert!(!file_part.changes().is_visible(insert.id()));
        }
        prop_assert_eq!(file_part.writes().len() + tail.writes().len(), new.writes().len());
        prop_assert_eq!(
            file_part.changes().visible_rows() + tail.changes().visible_rows(),
            new.changes().visible_rows()
        );
    }

    #[test]
    fn transactions_go_on_across_checkpoints(
        row_count in prop_oneof![2..6_u64, 126..132_u64],
        steps in steps(changes_of_few_cells(3), 2, 200),
    ) {
        Database::new(row_count).run(steps);
    }
}

#[test]
fn a_value_that_is_restored_after_the_checkpoint_is_not_lost() {
    // The checkpoint has 5, a later commit 7, and a transaction over that 5 again: a patch as in the new file.
    let mut at = Version::new(10);
    at.patch(Sid(1), 0, 5).unwrap();
    at.insert(Insert::sorted(InsertId(0), Place::Tail, 0, [5])).unwrap();
    let map = RowMap::new(&at);
    let mut later = at.clone();
    later.patch(Sid(1), 0, 7).unwrap();
    later.patch(InsertId(0), 0, 7).unwrap();
    let mut transaction = Transaction::new(&later);
    transaction.patch(Sid(1), 0, 5).unwrap();
    transaction.patch(InsertId(0), 0, 5).unwrap();

    let latest = map.map_changes(&later).unwrap();
    assert_eq!(latest.counts().patched, 2);
    let mut elsewhere = Transaction::new(&latest);
    elsewhere.delete(Sid(4)).unwrap();
    let (latest, theirs) = elsewhere.into_parts();
    let committed = map.map_transaction(&transaction).unwrap().rebased(&latest, [&theirs]).unwrap();
    assert_eq!(committed.changes().counts(), ChangeCounts { deleted: 1, inserted: 0, patched: 2 });
    for row in [Sid(1), Sid(10)] {
        assert_eq!(committed.changes().row_patches(row).collect::<Vec<_>>(), [(0, &5)]);
    }
}

#[test]
fn a_value_that_is_restored_across_two_checkpoints_is_not_lost() {
    // The first file has 5, a later commit 6, and a transaction over that 5 again.
    let mut at = Version::new(10);
    at.patch(Sid(1), 0, 5).unwrap();
    at.insert(Insert::sorted(InsertId(0), Place::Tail, 0, [5])).unwrap();
    let map = RowMap::new(&at);
    at.patch(Sid(1), 0, 6).unwrap();
    at.patch(InsertId(0), 0, 6).unwrap();
    let mut transaction = Transaction::new(&at);
    transaction.patch(Sid(1), 0, 5).unwrap();
    transaction.patch(InsertId(0), 0, 5).unwrap();
    let latest = map.map_changes(&at).unwrap();
    let transaction = map.map_transaction(&transaction).unwrap();

    // The second file has 6. Whether the transaction commits before the switch or after it, its readers see 5.
    let map = RowMap::new(&latest);
    let mapped = map.map_transaction(&transaction).unwrap();
    let (committed, _) = transaction.rebased(&latest, []).unwrap().into_parts();
    for version in [&map.map_changes(&committed).unwrap(), mapped.changes()] {
        for row in [Sid(1), Sid(10)] {
            assert_eq!(version.row_patches(row).collect::<Vec<_>>(), [(0, &5)]);
        }
    }
}

#[test]
fn names_after_a_checkpoint() {
    let mut at = Version::new(4);
    at.delete(Sid(0)).unwrap();
    at.insert(Insert::sorted(InsertId(5), Place::Before(Sid(2)), 0, [1])).unwrap();
    let map = RowMap::new(&at);
    assert_eq!(map.row_count(), 4);
    assert_eq!(map.map_row(Sid(0)), None);
    assert_eq!(map.map_row(Sid(1)), Some(Sid(0).into()));
    assert_eq!(map.map_row(InsertId(5)), Some(Sid(1).into()));
    assert_eq!(map.map_row(Sid(3)), Some(Sid(3).into()));
    assert_eq!(map.map_row(InsertId(6)), Some(InsertId(6).into()));
    let writes: WriteSet = [Sid(0), Sid(1)].into_iter().collect();
    assert_eq!(map.map_writes(&writes), [Sid(0)].into_iter().collect());
}

#[test]
fn an_earlier_version_or_another_file_cannot_be_mapped() {
    let before = Version::new(4);
    let mut at = before.clone();
    at.delete(Sid(0)).unwrap();
    let map = RowMap::new(&at);
    assert_eq!(map.map_changes(&before).unwrap_err(), Error::NotLater);
    assert_eq!(map.map_changes(&Version::new(5)).unwrap_err(), Error::NotLater);
    let mut patched = at.clone();
    patched.patch(Sid(1), 0, 5).unwrap();
    assert_eq!(RowMap::new(&patched).map_changes(&at).unwrap_err(), Error::NotLater);
    assert_eq!(map.map_transaction(&Transaction::new(&before)).unwrap_err(), Error::NotLater);
}
