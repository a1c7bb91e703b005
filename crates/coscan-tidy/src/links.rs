//! Links of Markdown pages lead to files and headings that are there.

use crate::Tree;
use crate::markdown::{anchors, prose};

pub(crate) fn check(tree: &Tree) -> Vec<String> {
    let mut problems = Vec::new();
    // Templates of pages that are written elsewhere have their links from there.
    let pages = tree.files(&[".md"]).filter(|(path, _)| !path.contains("/examples/"));
    for (path, text) in pages {
        for (line, target) in
            prose(text).flat_map(|(line, text)| targets(text).map(move |to| (line, to)))
        {
            if let Err(reason) = follow(tree, path, target) {
                problems
                    .push(format!("{path}:{line}: the link to {target} leads nowhere: {reason}"));
            }
        }
    }
    problems
}

/// The targets of links and pictures in a line, but for those in the web.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    let targets = line.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    targets.filter(|target| !target.contains("://") && !target.starts_with("mailto:"))
}

fn follow(tree: &Tree, page: &str, target: &str) -> Result<(), String> {
    let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
    let path = if file.is_empty() { page.to_owned() } else { resolve(page, file) };
    if !path.is_empty() && !tree.has(&path) {
        return Err(format!("there is no {path}"));
    }
    match tree.text(&path) {
        Some(text) if !anchor.is_empty() && !anchors(text).any(|heading| heading == anchor) => {
            Err(format!("{path} has no such heading"))
        }
        _ => Ok(()),
    }
}

/// The path that a relative link of a page names.
fn resolve(page: &str, link: &str) -> String {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            name => parts.push(name),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_to_missing_files_and_headings_are_reported() {
        let mut tree = Tree::default();
        tree.add("README.md", "[a](docs/a.md#two-words) [web](https://b.c/d) [top](docs/)\n");
        tree.add("docs/a.md", "# Two words\n[up](../README.md) [here](#two-words)\n");
        assert_eq!(check(&tree), Vec::<String>::new());
        tree.add("b.md", "[a](docs/b.md)\n\n[b](docs/a.md#three)\n");
        let problems = check(&tree);
        assert_eq!(problems.len(), 2);
        assert!(problems[0].starts_with("b.md:1:") && problems[0].ends_with("no docs/b.md"));
        assert!(problems[1].starts_with("b.md:3:") && problems[1].ends_with("no such heading"));
    }
}
