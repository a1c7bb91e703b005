//! Trees against sorted maps.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

#[derive(Clone, PartialEq, Debug)]
struct Weighted {
    key: u32,
    weight: u64,
}

impl Entry for Weighted {
    type Key = u32;
    type Sum = u64;

    fn key(&self) -> &u32 {
        &self.key
    }

    fn sum(&self) -> u64 {
        self.weight
    }
}

type Model = BTreeMap<u32, u64>;

fn entries(model: &Model) -> Vec<Weighted> {
    model.iter().map(|(&key, &weight)| Weighted { key, weight }).collect()
}

/// Puts an entry of that weight, or removes the one that is there.
type Change = (u32, Option<u64>);

fn apply(tree: &mut Tree<Weighted>, model: &mut Model, (key, weight): Change) {
    match weight {
        Some(weight) => {
            tree.put(Weighted { key, weight });
            model.insert(key, weight);
        }
        None => {
            tree.remove(&key);
            model.remove(&key);
        }
    }
}

fn changes(most: usize) -> impl Strategy<Value = Vec<Change>> {
    let weight = prop_oneof![Just(None), (0..5_u64).prop_map(Some)];
    prop::collection::vec((0..200_u32, weight), 0..most)
}

/// Checks that all leaves are on one level, that no node is empty or too long, and that keys and sums of children are right.
fn check_nodes(node: &Node<Weighted>) -> usize {
    assert!((1..=NODE_MAX).contains(&node.len()));
    let Node::Inner(children) = node else { return 0 };
    let levels: Vec<usize> = children.iter().map(|child| check_nodes(&child.node)).collect();
    for child in children {
        assert_eq!(child.sum, child.node.sum());
        let first = match &*child.node {
            Node::Leaf(entries) => *entries[0].key(),
            Node::Inner(children) => children[0].first,
        };
        assert_eq!(child.first, first);
    }
    assert!(levels.iter().all(|level| *level == levels[0]));
    levels[0] + 1
}

fn check(tree: &Tree<Weighted>, model: &Model) {
    let expected = entries(model);
    if let Some(root) = &tree.root {
        check_nodes(root);
    }
    assert!(tree.iter().eq(expected.iter()));
    assert_eq!(tree.is_empty(), model.is_empty());
    assert_eq!(tree.sum(), model.values().sum::<u64>());
    for key in 0..200 {
        assert_eq!(tree.get(&key).map(|entry| entry.weight), model.get(&key).copied());
        let before: u64 = model.range(..key).map(|(_, weight)| weight).sum();
        assert_eq!(tree.sum_before(|other| *other < key), before);
        let after = expected.iter().filter(|entry| entry.key >= key);
        assert!(tree.iter_after(|other| *other < key).eq(after));
    }
    for sum in 0..=tree.sum() {
        let mut before = 0;
        let reached = expected.iter().map(|entry| {
            let sum = before;
            before += entry.weight;
            (sum, entry)
        });
        let last = reached.take_while(|(before, _)| *before <= sum).last();
        assert_eq!(tree.last_reached(|_, before| before <= sum), last);
    }
}

proptest! {
    #[test]
    fn a_tree_is_a_sorted_map_and_its_versions_do_not_change(
        first in changes(300),
        second in changes(100),
    ) {
        let (mut tree, mut model) = (Tree::default(), Model::new());
        first.into_iter().for_each(|change| apply(&mut tree, &mut model, change));
        check(&tree, &model);
        check(&Tree::from_sorted(entries(&model)), &model);
        let (version, of_version) = (tree.clone(), model.clone());
        second.into_iter().for_each(|change| apply(&mut tree, &mut model, change));
        check(&tree, &model);
        check(&version, &of_version);
    }

    #[test]
    fn a_difference_has_each_change(first in changes(300), second in changes(20)) {
        let (mut tree, mut model) = (Tree::default(), Model::new());
        first.into_iter().for_each(|change| apply(&mut tree, &mut model, change));
        let (old, before) = (tree.clone(), model.clone());
        second.into_iter().for_each(|change| apply(&mut tree, &mut model, change));

        let weight = |entry: Option<&Weighted>| entry.map(|entry| entry.weight);
        let key = |entry: Option<&Weighted>| entry.map(|entry| entry.key);
        for (old, new, before, after) in
            [(&old, &tree, &before, &model), (&tree, &old, &model, &before)]
        {
            let mut found = BTreeMap::new();
            for (old, new) in diff(old, new) {
                let key = key(old).or(key(new)).unwrap();
                prop_assert!(found.insert(key, (weight(old), weight(new))).is_none());
            }
            for key in 0..200 {
                let expected = (before.get(&key).copied(), after.get(&key).copied());
                match found.get(&key) {
                    Some(found) => prop_assert_eq!(*found, expected),
                    None => prop_assert_eq!(expected.0, expected.1),
                }
            }
        }
    }
}

#[test]
fn a_difference_passes_over_what_two_versions_share() {
    let entries = (0..10_000).map(|key| Weighted { key, weight: 1 });
    let old = Tree::from_sorted(entries);
    let mut new = old.clone();
    assert!(old.is_same(&new));
    assert_eq!(diff(&old, &new).count(), 0);
    for key in [0, 5_000, 5_001, 9_999] {
        new.put(Weighted { key, weight: 2 });
    }
    assert!(!old.is_same(&new));
    assert!(diff(&old, &new).count() <= 4 * NODE_MAX);
    // A leaf that was split and a level more move the borders of nodes, for some nodes only.
    new.put(Weighted { key: 10_000, weight: 1 });
    new.remove(&2_000);
    assert!(diff(&old, &new).count() <= 6 * 2 * NODE_MAX);
}
