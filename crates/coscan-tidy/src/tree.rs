//! The files of the project.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::{fs, io};

/// Folders that hold nothing of the project.
const LEFT_OUT: [&str; 2] = ["target", ".git"];

/// Ends of names of files whose text is checked.
const TEXTS: [&str; 5] = ["rs", "md", "toml", "html", "js"];

/// The files of a project, by their paths relative to its root, with `/` between folders.
#[derive(Debug, Default)]
pub struct Tree {
    paths: BTreeSet<String>,
    texts: BTreeMap<String, String>,
}

impl Tree {
    /// Reads a project.
    ///
    /// # Errors
    /// If a file or folder cannot be read.
    pub fn read(root: &Path) -> io::Result<Self> {
        let mut tree = Self::default();
        tree.add_folder(root, "")?;
        Ok(tree)
    }

    fn add_folder(&mut self, folder: &Path, prefix: &str) -> io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = format!("{prefix}{name}");
            let kind = entry.file_type()?;
            if kind.is_dir() && !LEFT_OUT.contains(&name.as_str()) {
                self.add_folder(&entry.path(), &format!("{path}/"))?;
            } else if kind.is_file() {
                let is_text = TEXTS.iter().any(|end| name.ends_with(&format!(".{end}")));
                let text = if is_text { fs::read_to_string(entry.path())? } else { String::new() };
                self.add(&path, &text);
            }
        }
        Ok(())
    }

    /// Adds a file.
    pub fn add(&mut self, path: &str, text: &str) {
        for (at, _) in path.match_indices('/') {
            self.paths.insert(path[..at].to_owned());
        }
        self.paths.insert(path.to_owned());
        self.texts.insert(path.to_owned(), text.to_owned());
    }

    /// Whether there is such a file or folder.
    pub(crate) fn has(&self, path: &str) -> bool {
        self.paths.contains(path)
    }

    /// Whether the path of a file or folder ends with these names.
    pub(crate) fn has_end(&self, end: &str) -> bool {
        self.has(end) || self.paths.iter().any(|path| path.ends_with(&format!("/{end}")))
    }

    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        self.texts.get(path).map(String::as_str)
    }

    /// The files whose names end so, with their texts.
    pub(crate) fn files(&self, ends: &[&str]) -> impl Iterator<Item = (&str, &str)> {
        let is_one = |path: &str| ends.iter().any(|end| path.ends_with(end));
        let files = self.texts.iter().map(|(path, text)| (path.as_str(), text.as_str()));
        files.filter(move |(path, _)| is_one(path))
    }
}
