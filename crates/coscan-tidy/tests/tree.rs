//! This project keeps the rules.

use std::path::Path;

use coscan_tidy::{Tree, problems};

#[test]
fn this_tree_is_tidy() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let tree = Tree::read(root).expect("the tree can be read");
    let problems = problems(&tree);
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
}
