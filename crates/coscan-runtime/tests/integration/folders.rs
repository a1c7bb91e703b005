//! Each folder of the crate imports exactly what the table in ARCHITECTURE.md lists.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The folders or files at the top that each folder imports.
type Imports = BTreeMap<String, BTreeSet<String>>;

/// Modules that belong to no folder and that all may use.
const OF_ALL: [&str; 3] = ["error", "machine", "options"];

fn imports_of(file: &Path, imports: &mut BTreeSet<String>) {
    let text = fs::read_to_string(file).unwrap();
    let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    for line in code {
        let paths = line.match_indices("crate::").map(|(at, prefix)| &line[at + prefix.len()..]);
        let names =
            paths.filter_map(|path| path.split(|c: char| !c.is_alphanumeric() && c != '_').next());
        let is_module =
            |name: &&str| name.starts_with(char::is_lowercase) && !OF_ALL.contains(name);
        imports.extend(names.filter(is_module).map(str::to_owned));
    }
}

fn visit(folder: &Path, imports: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => visit(&path, imports),
            false if path.ends_with("tests.rs") => {}
            false => imports_of(&path, imports),
        }
    }
}

/// The imports in the code.
fn imports() -> Imports {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let folders = fs::read_dir(source).unwrap().map(|entry| entry.unwrap().path());
    let folders = folders.filter(|path| path.is_dir()).map(|path| {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let mut imports = BTreeSet::new();
        visit(&path, &mut imports);
        imports.remove(&name);
        (name, imports)
    });
    folders.collect()
}

/// The imports in the table: rows of a folder, its content, and what it may import.
fn documented() -> Imports {
    let text = include_str!("../../../../ARCHITECTURE.md");
    let (_, table) = text.split_once("| folder of the runtime |").unwrap();
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let names = |cell: &str| -> BTreeSet<String> {
        cell.split('`')
            .skip(1)
            .step_by(2)
            .map(|name| name.trim_end_matches('/').to_owned())
            .collect()
    };
    rows.map(|row| {
        let cells: Vec<_> = row.split('|').collect();
        (names(cells[1]).pop_first().unwrap(), names(cells[3]))
    })
    .collect()
}

#[test]
fn each_folder_imports_what_the_architecture_says() {
    assert_eq!(imports(), documented());
}
