//! The names of files and directories, as they are seen and as they are durable.

use std::collections::BTreeMap;
use std::io;

use coscan_core::SplitMix64;

use super::cached_file::Choice;
use crate::disk::parent;

/// What has a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Node {
    Directory,
    /// A file by its number.
    File(u64),
}

/// Names that change together: each has this node then, or is gone.
type Change = Vec<(String, Option<Node>)>;

#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    seen: BTreeMap<String, Node>,
    durable: BTreeMap<String, Node>,
    /// The changes that are not durable, oldest first.
    pending: Vec<Change>,
}

impl Names {
    pub(super) fn get(&self, path: &str) -> Option<Node> {
        if path.is_empty() { Some(Node::Directory) } else { self.seen.get(path).copied() }
    }

    pub(super) fn file(&self, path: &str) -> io::Result<u64> {
        match self.get(path) {
            Some(Node::File(file)) => Ok(file),
            Some(Node::Directory) => Err(io::ErrorKind::IsADirectory.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    pub(super) fn directory(&self, path: &str) -> io::Result<()> {
        match self.get(path) {
            Some(Node::Directory) => Ok(()),
            Some(Node::File(_)) => Err(io::ErrorKind::NotADirectory.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    pub(super) fn list(&self, directory: &str) -> Vec<String> {
        let inside = self.seen.keys().filter(|path| parent(path) == directory);
        inside.map(|path| path.rsplit('/').next().unwrap_or(path).to_owned()).collect()
    }

    pub(super) fn change(&mut self, change: Change) -> io::Result<()> {
        for (path, _) in &change {
            self.directory(parent(path))?;
        }
        apply(&mut self.seen, &change);
        self.pending.push(change);
        Ok(())
    }

    /// Makes the changes of one directory durable. One that is of two directories, too: file systems have a journal.
    pub(super) fn sync(&mut self, directory: &str) {
        let of_directory = |change: &mut Change| change.iter().any(|it| parent(&it.0) == directory);
        for change in self.pending.extract_if(.., of_directory) {
            apply(&mut self.durable, &change);
        }
    }

    /// Keeps some of the pending changes. What is in a directory that is lost is lost.
    pub(super) fn crash(&mut self, random: &mut SplitMix64) {
        let choice = Choice::new(random);
        for change in self.pending.drain(..) {
            if choice.of(1, random) == 1 {
                apply(&mut self.durable, &change);
            }
        }
        // Directories are before what is in them.
        let mut kept: BTreeMap<String, Node> = BTreeMap::new();
        for (path, node) in &self.durable {
            let directory = parent(path);
            if directory.is_empty() || kept.get(directory) == Some(&Node::Directory) {
                kept.insert(path.clone(), *node);
            }
        }
        self.seen = kept.clone();
        self.durable = kept;
    }

    pub(super) fn has_file(&self, file: u64) -> bool {
        self.seen.values().any(|node| *node == Node::File(file))
    }
}

fn apply(names: &mut BTreeMap<String, Node>, change: &Change) {
    for (path, node) in change {
        match node {
            Some(node) => names.insert(path.clone(), *node),
            None => names.remove(path),
        };
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;

    fn outcomes(names: &Names) -> std::collections::BTreeSet<Vec<String>> {
        let after = |seed| {
            let mut names = names.clone();
            names.crash(&mut SplitMix64(seed));
            names.seen.into_keys().collect()
        };
        (0..400).map(after).collect()
    }

    #[test]
    fn unsynced_names_are_kept_or_lost_each_for_itself() {
        let mut names = Names::default();
        names.change(vec![("d".into(), Some(Node::Directory))]).unwrap();
        names.change(vec![("d/a".into(), Some(Node::File(1)))]).unwrap();
        names.change(vec![("b".into(), Some(Node::File(2)))]).unwrap();
        assert_eq!(outcomes(&names).len(), 6, "d/a is lost with d");
        names.sync("d");
        assert!(outcomes(&names).contains(&vec![]), "d itself is a name of its parent");
        names.sync("");
        assert_eq!(outcomes(&names), [["b", "d", "d/a"].map(String::from).to_vec()].into());
        names.change(vec![("d/c".into(), Some(Node::File(1))), ("d/a".into(), None)]).unwrap();
        assert_eq!(outcomes(&names).len(), 2, "a rename is kept or lost as a whole");
    }
}
