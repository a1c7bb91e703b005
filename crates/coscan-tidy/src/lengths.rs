//! A file holds one idea, and few ideas need more lines than these. (Clippy counts those of functions.)

use crate::Tree;

/// The most lines of a file of Rust.
const LINES_MAX: usize = 300;

/// The same of tests and benchmarks, which are lists of cases.
const TEST_LINES_MAX: usize = 600;

pub(crate) fn check(tree: &Tree) -> Vec<String> {
    let problem = |(path, text): (&str, &str)| {
        let is_test = path.contains("/tests/") || path.contains("/benches/");
        let most = if is_test { TEST_LINES_MAX } else { LINES_MAX };
        let lines = text.lines().count();
        let advice = "move one of its ideas to a file of its own";
        (lines > most).then(|| format!("{path}: {lines} lines, at most {most}: {advice}"))
    };
    tree.files(&[".rs"]).filter_map(problem).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_301_lines_is_reported() {
        let mut tree = Tree::default();
        tree.add("long.rs", &"//\n".repeat(301));
        tree.add("enough.rs", &"//\n".repeat(300));
        tree.add("crates/a/tests/long.rs", &"//\n".repeat(600));
        tree.add("page.md", &"text\n".repeat(999));
        let problems = check(&tree);
        assert_eq!(problems.len(), 1);
        assert!(problems[0].starts_with("long.rs: 301 lines"), "{problems:?}");
    }
}
