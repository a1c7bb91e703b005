//! A version does not change when another is made from it.

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
