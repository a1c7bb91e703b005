//! Files and headings that docs and comments name are there.

use crate::Tree;
use crate::markdown::{code, headings, prose};

/// Ends of names that stand for files of this project, if they are in backticks.
const ENDS: [&str; 2] = [".rs", ".md"];

/// The history, which names files that were; and the examples of this crate.
const LEFT_OUT: [&str; 2] = ["CHANGELOG.md", "crates/coscan-tidy/"];

/// Files of others that comments cite.
const OF_OTHERS: [&str; 2] = ["BloomFilter.md", "doc/specs/thrift-compact-protocol.md"];

pub(crate) fn check(tree: &Tree) -> Vec<String> {
    let mut problems = Vec::new();
    for (path, text) in tree.files(&[".md", ".rs", ".toml", ".py", ".yml"]) {
        if LEFT_OUT.iter().any(|history| path.starts_with(history)) {
            continue;
        }
        for (line, words) in words(path, text) {
            let crates: Vec<_> = code(words).filter_map(|name| crate_of(tree, name)).collect();
            for name in code(words).filter(|name| is_file(name)) {
                if !exists(tree, path, name) {
                    problems.push(format!("{path}:{line}: there is no file `{name}`"));
                } else if !name.contains('/') && !crates.is_empty() && !is_in(tree, &crates, name) {
                    let crates = crates.join(", ");
                    problems.push(format!("{path}:{line}: there is no file `{name}` in {crates}"));
                }
            }
            for (page, heading) in cited_headings(words) {
                let pages = tree.files(&[".md"]).filter(|(path, _)| path.ends_with(page));
                let mut found = pages.flat_map(|(_, text)| headings(text));
                if !found.any(|one| one == heading) {
                    problems.push(format!("{path}:{line}: {page} has no heading \"{heading}\""));
                }
            }
        }
    }
    problems
}

/// The lines for people: prose of pages, comments of code.
fn words<'a>(path: &str, text: &'a str) -> Box<dyn Iterator<Item = (usize, &'a str)> + 'a> {
    let mark = match path.rsplit('.').next() {
        Some("md") => return Box::new(prose(text)),
        Some("rs") => "//",
        _ => "#",
    };
    let comment = move |(line, number): (&'a str, usize)| Some((number, &line[line.find(mark)?..]));
    Box::new(text.lines().zip(1..).filter_map(comment))
}

/// Whether a name is that of one file, not a pattern or a placeholder.
fn is_file(name: &str) -> bool {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "._-/".contains(letter);
    ENDS.iter().any(|end| name.len() > end.len() && name.ends_with(end))
        && name.chars().all(is_plain)
}

/// Whether a file can be found by its name: from the root, from its own crate, or by the end of a path.
fn exists(tree: &Tree, from: &str, name: &str) -> bool {
    let name = name.trim_start_matches("../").trim_start_matches("./");
    let in_crate = from.split('/').take(2).collect::<Vec<_>>().join("/");
    OF_OTHERS.contains(&name) || tree.has(&format!("{in_crate}/{name}")) || tree.has_end(name)
}

/// The crate of a path, as `one` of `crates/one/src/lib.rs`, or the crate of this name.
fn crate_of<'a>(tree: &Tree, name: &'a str) -> Option<&'a str> {
    match name.strip_prefix("crates/") {
        Some(path) => path.split_once('/').map(|(name, _)| name),
        None => tree.has(&format!("crates/{name}/Cargo.toml")).then_some(name),
    }
}

/// Whether one of the crates that a line names has this file, tests aside: a name without a folder stands for a neighbour.
fn is_in(tree: &Tree, crates: &[&str], name: &str) -> bool {
    let end = format!("/{name}");
    tree.files(&ENDS).any(|(path, _)| {
        let is_of = |name: &&str| path.starts_with(&format!("crates/{name}/"));
        path.ends_with(&end) && !path.contains("/tests/") && crates.iter().any(is_of)
    })
}

/// Headings that a line cites as `PAGE.md, "Heading"`.
fn cited_headings(line: &str) -> impl Iterator<Item = (&str, &str)> {
    line.match_indices(".md, \"").filter_map(|(at, found)| {
        let start = line[..at].rfind([' ', '(', '`']).map_or(0, |before| before + 1);
        let heading = line[at + found.len()..].split('"').next()?;
        Some((&line[start..at + 3], heading.trim_end_matches(['.', ','])))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> Tree {
        let mut tree = Tree::default();
        tree.add("crates/one/src/list/mod.rs", "");
        tree.add("GUIDE.md", "# Who reads\n");
        tree
    }

    #[test]
    fn names_of_missing_files_are_reported() {
        let mut tree = tree();
        tree.add("a.md", "`list/mod.rs`, `crates/one/src/list/mod.rs`, `*.rs`, `NAME-or-so`\n");
        tree.add(
            "crates/one/src/lib.rs",
            "//! See `src/list/mod.rs`.\nlet name = \"`none.rs`\";\n",
        );
        assert_eq!(check(&tree), Vec::<String>::new());
        tree.add("b.md", "text\n`list/gone.rs`\n");
        tree.add("crates/two/src/new.rs", "");
        tree.add("c.md", "`crates/one/src/list/`: `mod.rs`, `new.rs`, `crates/two/src/`\n");
        tree.add("d.md", "`crates/one/src/list/mod.rs`, `new.rs`\n");
        tree.add("crates/one/Cargo.toml", "");
        tree.add("crates/one/tests/probe.rs", "");
        tree.add("e.md", "`one`: `probe.rs`; `crates/one/tests/probe.rs`\n");
        tree.add("crates/one/src/two.rs", "fn two() {} // as in `three.rs`\n");
        assert_eq!(
            check(&tree),
            [
                "b.md:2: there is no file `list/gone.rs`",
                "crates/one/src/two.rs:1: there is no file `three.rs`",
                "d.md:1: there is no file `new.rs` in one",
                "e.md:1: there is no file `probe.rs` in one, one",
            ]
        );
    }

    #[test]
    fn missing_headings_are_reported() {
        let mut tree = tree();
        tree.add("a.toml", "# (GUIDE.md, \"Who reads\")\n");
        assert_eq!(check(&tree), Vec::<String>::new());
        tree.add("b.toml", "# (GUIDE.md, \"Who writes\")\n# (NONE.md, \"Who reads\")\n");
        assert_eq!(
            check(&tree),
            [
                "b.toml:1: GUIDE.md has no heading \"Who writes\"",
                "b.toml:2: NONE.md has no heading \"Who reads\""
            ]
        );
    }
}
