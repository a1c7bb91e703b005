//! A version does not change when another is made from it.

use std::ops::Range;

use coscan_pdt::*;
use proptest::prelude::*;

use super::model::*;

proptest! {
    #[test]
    fn old_versions_stay_as_they_were(
        row_count in row_counts(),
        steps in prop::collection::vec(changes(40), 1..8),
    ) {
        let mut made = vec![(Version::new(row_count), Model::new(row_count))];
        let mut next = 0;
        for (number, changes) in steps.iter().enumerate() {
            // From any of the versions so far: their histories are a tree.
            let (mut version, mut model) = made[number / 2].clone();
            apply_all(&mut version, &mut model, changes, &mut next);
            made.push((version, model));
        }
        for (version, model) in &made {
            assert_same(version, model);
        }
    }
}

/// What a query sees of a range, apart from its stable rows.
fn seen(version: &Version, range: Range<u64>) -> String {
    let range = version.range(Sid(range.start)..Sid(range.end));
    let patches: Vec<Vec<_>> = (0..COLUMNS).map(|column| range.patches(column).collect()).collect();
    let inserts = range.inserts().map(|insert| (insert.id(), insert.row()));
    format!(
        "{:?} {patches:?} {:?}",
        range.deleted_runs().collect::<Vec<_>>(),
        inserts.collect::<Vec<_>>()
    )
}

proptest! {
    #[test]
    fn equal_versions_of_a_range_are_equal_changes(
        steps in prop::collection::vec(changes(6), 1..8),
    ) {
        let (rows, ranges) = (20_000, [0..4_096, 4_096..8_192, 5_000..20_000]);
        let mut version = Version::new(rows);
        let mut model = Model::new(rows);
        let (mut identified, mut next) = (Vec::new(), 0);
        for changes in &steps {
            for range in &ranges {
                let seen = seen(&version, range.clone());
                let of_range = version.range(Sid(range.start)..Sid(range.end)).version();
                for (other, identity, known) in &identified {
                    let is_equal = other == range && *identity == of_range;
                    prop_assert!(!is_equal || *known == seen, "{known} and {seen}");
                }
                identified.push((range.clone(), of_range, seen));
            }
            // Only weak references are left: changed blocks must get new addresses all the same.
            apply_all(&mut version, &mut model, changes, &mut next);
        }
    }
}

#[test]
fn a_range_keeps_its_version_while_other_rows_change() {
    let mut version = Version::new(20_000);
    version.delete(Sid(5_000)).unwrap();
    let of = |version: &Version, range: Range<u64>| {
        version.range(Sid(range.start)..Sid(range.end)).version()
    };
    let before = version.clone();
    version.patch(Sid(10_000), 1, 5).unwrap();
    assert_eq!(of(&version, 4_096..8_192), of(&before, 4_096..8_192));
    assert_ne!(of(&version, 8_192..12_288), of(&before, 8_192..12_288));
    version.delete(Sid(5_001)).unwrap();
    assert_ne!(of(&version, 4_096..8_192), of(&before, 4_096..8_192));
}

#[test]
fn a_clone_is_the_same_version_until_it_is_changed() {
    let mut version = Version::new(10_000);
    version.patch(Sid(7_000), 1, 5).unwrap();
    let mut clone = version.clone();
    assert!(clone.is_same_version(&version));
    assert!(clone.delete(Sid(10_000)).is_err());
    assert!(clone.is_same_version(&version), "a change that is refused copies nothing");
    clone.insert(Insert::sorted(InsertId(0), Place::Tail, 0, [])).unwrap();
    assert!(!clone.is_same_version(&version));
    assert!(Version::new(4).is_same_version(&Version::new(4)));
    assert!(!Version::new(4).is_same_version(&Version::new(5)));
}

#[test]
fn versions_are_shared_by_threads() {
    fn is_shared<T: Send + Sync>() {}
    is_shared::<(Version, Transaction<i64, u8>, WriteSet, RowMap<i64, u8>)>();
}
