//! Files of tests in the syntax of sqllogictest: their statements, without what they expect.

use std::path::{Path, PathBuf};

/// The statements of a file, and of those that it includes.
#[derive(Debug)]
pub(crate) struct TestFile {
    /// Its path below the folder of all files.
    pub(crate) name: String,
    pub(crate) statements: Vec<Statement>,
}

/// A statement or query, and where it is.
#[derive(Debug)]
pub(crate) struct Statement {
    pub(crate) sql: String,
    /// The file below the folder of all files, and the line: `joins.slt:12`.
    pub(crate) place: String,
}

impl Statement {
    /// The statement for an engine whose copy of the data is in a folder.
    pub(crate) fn sql_in(&self, folder: &Path) -> String {
        let folder = folder.display();
        let of_crate = ["test_files/", "data/"];
        of_crate.iter().fold(self.sql.clone(), |sql, path| {
            sql.replace(&format!("'{path}"), &format!("'{folder}/{path}"))
        })
    }

    /// Whether the statement shows plans, which are expected to differ.
    pub(crate) fn is_about_plans(&self) -> bool {
        self.sql.trim_start().to_lowercase().starts_with("explain")
    }

    /// Whether the query orders its rows.
    pub(crate) fn is_ordered(&self) -> bool {
        self.sql.to_lowercase().contains("order by")
    }
}

/// All files below a folder, by name, except those of Spark's functions, which have a session of their own.
pub(crate) fn all(folder: &Path) -> Vec<TestFile> {
    let mut paths = Vec::new();
    walk(folder, &mut |path| paths.push(path.to_owned()));
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "slt"));
    paths.retain(|path| !path.strip_prefix(folder).unwrap().starts_with("spark"));
    paths.sort();
    let statements = |path: &PathBuf| {
        let mut statements = Vec::new();
        read(folder, path, &mut statements);
        let name = path.strip_prefix(folder).unwrap().display().to_string();
        TestFile { name, statements }
    };
    paths.iter().map(statements).collect()
}

/// Copies the data files, and creates the folders that statements write to.
pub(crate) fn copy_data(from: &Path, to: &Path) {
    walk(from, &mut |path| {
        let below = path.strip_prefix(from).unwrap();
        let copy = to.join(below);
        std::fs::create_dir_all(copy.parent().unwrap()).unwrap();
        std::fs::copy(path, copy).unwrap();
        if let Ok(test) = below.strip_prefix("test_files") {
            let scratch = to.join("test_files/scratch").join(test.with_extension(""));
            std::fs::create_dir_all(scratch).unwrap();
        }
    });
}

fn walk(folder: &Path, visit: &mut dyn FnMut(&Path)) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { walk(&path, visit) } else { visit(&path) }
    }
}

/// Adds the statements of a file. Some included files are missing in the crate. Statements that need them fail in both
/// engines.
fn read(root: &Path, path: &Path, statements: &mut Vec<Statement>) {
    let Ok(text) = std::fs::read_to_string(path) else { return };
    let mut lines = text.lines().enumerate().peekable();
    let mut is_left_out = false;
    while let Some((number, line)) = lines.next() {
        let words: Vec<_> = line.split_whitespace().collect();
        match words.as_slice() {
            ["onlyif", engine, ..] => is_left_out |= !engine.eq_ignore_ascii_case("datafusion"),
            ["skipif", engine, ..] => is_left_out |= engine.eq_ignore_ascii_case("datafusion"),
            ["include", name] => read(root, &path.parent().unwrap().join(name), statements),
            ["statement" | "query", ..] => {
                let mut sql = Vec::new();
                while let Some((_, line)) =
                    lines.next_if(|(_, line)| !line.trim().is_empty() && *line != "----")
                {
                    sql.push(line);
                }
                if !std::mem::take(&mut is_left_out) {
                    let file = path.strip_prefix(root).unwrap().display();
                    let place = format!("{file}:{}", number + 1);
                    statements.push(Statement { sql: sql.join("\n"), place });
                }
            }
            _ => {}
        }
    }
}
