//! Words that were replaced stay gone: one thing has one word.

use crate::Tree;

/// Words that are gone, and the words that replaced them.
const GONE: [(&str, &str); 9] = [
    ("\"window", "\"dashboard"),
    ("docs/window.md", "docs/dashboard.md"),
    ("WindowState", "DashboardState"),
    ("coscan.refresh", "coscan.refresh_interval"),
    ("engine_tables", "datafusion_tables"),
    ("sandwich/", "chunkwise/"),
    ("SlotIndex", "ScanPosition"),
    ("CacheSlot", "CachedMetadata"),
    ("SPARSE_PART", "SPARSE_DIVISOR"),
];

/// Pages about what was, and this list.
const HISTORIES: [&str; 3] = ["CHANGELOG.md", "docs/decisions/", "crates/coscan-tidy/"];

pub(crate) fn check(tree: &Tree) -> Vec<String> {
    let mut problems = Vec::new();
    for (path, text) in tree.files(&[".md", ".rs", ".toml", ".html", ".js"]) {
        if HISTORIES.iter().any(|history| path.starts_with(history)) {
            continue;
        }
        for (line, number) in text.lines().zip(1..) {
            for (gone, word) in GONE.iter().filter(|(gone, _)| has_word(line, gone)) {
                problems.push(format!("{path}:{number}: `{gone}` is gone: write `{word}`"));
            }
        }
    }
    problems
}

/// Whether a word stands in a line on its own.
fn has_word(line: &str, word: &str) -> bool {
    let is_letter = |letter: char| letter.is_alphanumeric() || letter == '_';
    let (begins, ends) = (word.starts_with(is_letter), word.ends_with(is_letter));
    line.match_indices(word).any(|(at, _)| {
        let (before, after) = (&line[..at], &line[at + word.len()..]);
        !(begins && before.ends_with(is_letter) || ends && after.starts_with(is_letter))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_are_gone_are_reported() {
        for (gone, word) in GONE {
            let mut tree = Tree::default();
            tree.add("CHANGELOG.md", gone);
            tree.add("a.md", &format!("{word}\n"));
            assert_eq!(check(&tree), Vec::<String>::new());
            tree.add("b.rs", &format!("\n// {gone}\n"));
            assert_eq!(check(&tree), [format!("b.rs:2: `{gone}` is gone: write `{word}`")]);
        }
        assert!(has_word("src/sandwich/mod.rs", "sandwich/"));
        assert!(!has_word("aWindowState WindowStates", "WindowState"));
    }
}
