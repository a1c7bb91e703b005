//! Snapshot isolation: histories of transactions against models that run them one after the other.

use std::collections::BTreeSet;

use coscan_pdt::*;
use proptest::prelude::*;

use super::database::*;
use super::model::*;

proptest! {
    #[test]
    fn transactions_see_their_snapshot_and_commit_as_if_one_after_the_other(
        row_count in row_counts(),
        steps in steps(changes(6), 0, 60),
    ) {
        Database::new(row_count).run(steps);
    }

    #[test]
    fn a_write_set_is_a_set_of_names(
        one in prop::collection::btree_set(0..600_u64, 0..60),
        other in prop::collection::btree_set(0..600_u64, 0..60),
    ) {
        let name = |number: u64| match number % 3 {
            0 => RowId::from(InsertId(number)),
            _ => Sid(number).into(),
        };
        let names = |set: &BTreeSet<u64>| set.iter().map(|number| name(*number)).collect::<BTreeSet<_>>();
        let (one, other) = (names(&one), names(&other));
        let [mut writes, others] = [&one, &other].map(|set| set.iter().copied().collect::<WriteSet>());
        prop_assert!(writes.iter().eq(one.iter().copied()));
        prop_assert_eq!(writes.is_empty(), one.is_empty());
        prop_assert!((0..600).map(name).all(|row| writes.contains(row) == one.contains(&row)));
        let first = one.intersection(&other).next().copied();
        prop_assert_eq!(writes.conflict(&others), first);
        prop_assert_eq!(others.conflict(&writes), first);
        for row in &other {
            prop_assert_eq!(writes.add(*row), !one.contains(row));
        }
    }
}

#[test]
fn two_columns_of_one_row_conflict_and_two_rows_do_not() {
    let version = Version::new(10);
    let [mut one, mut same_row, mut other_row] = [0; 3].map(|_| Transaction::new(&version));
    one.patch(Sid(3), 0, 1).unwrap();
    same_row.patch(Sid(3), 1, 1).unwrap();
    other_row.patch(Sid(4), 0, 1).unwrap();
    let (latest, writes) = one.into_parts();
    let conflict = same_row.rebased(&latest, [&writes]).unwrap_err();
    assert_eq!(conflict, Error::Conflict(Sid(3).into()));
    let (latest, _) = other_row.rebased(&latest, [&writes]).unwrap().into_parts();
    assert_eq!(latest.counts().patched, 2);
}

#[test]
fn a_row_that_was_inserted_and_deleted_by_one_transaction_leaves_nothing() {
    let version = Version::new(10);
    let mut transaction = Transaction::new(&version);
    transaction.insert(Insert::sorted(InsertId(1), Place::Tail, 0, [1, 2, 3])).unwrap();
    transaction.delete(InsertId(1)).unwrap();
    let mut other = Transaction::new(&version);
    other.delete(Sid(0)).unwrap();
    let (latest, writes) = other.into_parts();
    let (rebased, _) = transaction.rebased(&latest, [&writes]).unwrap().into_parts();
    assert_eq!(rebased.counts(), ChangeCounts { deleted: 1, inserted: 0, patched: 0 });
}
