//! The users file:
//!
//! ```toml
//! [users.ann]
//! verifier = "SCRAM-SHA-256$4096:…"
//! tables = ["lineitem", "orders"]   # or "*"
//! writes = ["orders"]               # or "*"; by default none
//! weight = 2
//! admin = false
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use serde::Deserialize;

use crate::users::{Granted, User, Verifier};

/// The maximum length of a user's name, in bytes, as in PostgreSQL.
const NAME_BYTES_MAX: usize = 63;

/// The reason why users cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum UsersError {
    /// The file cannot be read.
    #[error("cannot read the users file {path}: {source}", path = path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The file is not a users file. The error has the number of the line, but not its text, which may contain a
    /// verifier.
    #[error("the users file is wrong, line {line}: {message}")]
    Toml {
        /// The number of the line, starting with 1.
        line: usize,
        /// The message of the parser.
        message: String,
    },
    /// Entries are invalid. There is one sentence for each entry.
    #[error("the users file is wrong: {}", .0.join("; "))]
    Entries(Vec<String>),
    /// The system provides no random bytes.
    #[error("the system gives no random bytes")]
    NoRandomness,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    users: BTreeMap<String, Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    verifier: String,
    #[serde(default)]
    tables: Tables,
    #[serde(default)]
    writes: Tables,
    #[serde(default = "one")]
    weight: u32,
    #[serde(default)]
    admin: bool,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Tables {
    Pattern(String),
    Names(BTreeSet<String>),
}

impl Default for Tables {
    fn default() -> Self {
        Self::Names(BTreeSet::new())
    }
}

fn one() -> u32 {
    1
}

/// Reads a users file.
pub(super) fn read(path: &Path) -> Result<BTreeMap<String, Arc<User>>, UsersError> {
    let text = fs::read_to_string(path)
        .map_err(|source| UsersError::Read { path: path.to_owned(), source })?;
    parse(&text)
}

/// Reads the text of a users file.
pub(super) fn parse(text: &str) -> Result<BTreeMap<String, Arc<User>>, UsersError> {
    let file: File = toml::from_str(text).map_err(|error| UsersError::Toml {
        line: error.span().map_or(1, |span| line_of(text, span.start)),
        message: without_values(error.message()).to_owned(),
    })?;
    let (mut users, mut errors) = (BTreeMap::new(), Vec::new());
    for (name, entry) in file.users {
        match user(name.clone(), entry) {
            Ok(user) => {
                users.insert(name, Arc::new(user));
            }
            Err(error) => errors.push(format!("user `{name}`: {error}")),
        }
    }
    if errors.is_empty() { Ok(users) } else { Err(UsersError::Entries(errors)) }
}

fn user(name: String, entry: Entry) -> Result<User, String> {
    if name.is_empty() || name.len() > NAME_BYTES_MAX || name.contains('\0') {
        return Err(format!("a name has 1 to {NAME_BYTES_MAX} bytes"));
    }
    let verifier =
        Verifier::parse(&entry.verifier).map_err(|error| format!("verifier: {error}"))?;
    if entry.weight == 0 {
        return Err("weight is 0; it must be at least 1".to_owned());
    }
    let (tables, writes) = (granted("tables", entry.tables)?, granted("writes", entry.writes)?);
    if let Granted::Only(names) = &writes
        && let Some(hidden) = names.iter().find(|name| !tables.includes(name))
    {
        return Err(format!("writes has table {hidden}, which is not among its tables"));
    }
    let (weight, admin) = (entry.weight, entry.admin);
    Ok(User { name, tables, writes, weight, admin, verifier: Some(verifier) })
}

fn granted(setting: &str, tables: Tables) -> Result<Granted, String> {
    match tables {
        Tables::Pattern(pattern) if pattern == "*" => Ok(Granted::All),
        Tables::Pattern(_) => Err(format!(r#"{setting} is a list of names, or "*" for all"#)),
        Tables::Names(names) => Ok(Granted::Only(names)),
    }
}

/// The text to add to a users file for a new user, who may read these tables, or all if the list is empty.
#[must_use]
pub fn entry(name: &str, verifier: &Verifier, tables: &[String]) -> String {
    let key = toml::Value::String(name.to_owned());
    let tables = match tables {
        [] => toml::Value::String("*".to_owned()),
        tables => names(tables),
    };
    format!(
        "[users.{key}]\nverifier = \"{verifier}\"\ntables = {tables}\nweight = 1\nadmin = false\n"
    )
}

/// The line to add to such an entry for a user who may change these tables, or all for `*`.
#[must_use]
pub fn entry_of_writes(tables: &[String]) -> String {
    let tables = match tables {
        [all] if all == "*" => toml::Value::String("*".to_owned()),
        tables => names(tables),
    };
    format!("writes = {tables}\n")
}

fn names(tables: &[String]) -> toml::Value {
    tables.iter().cloned().map(toml::Value::String).collect::<Vec<_>>().into()
}

/// The line of a position in a text, from 1 on.
fn line_of(text: &str, position: usize) -> usize {
    text.get(..position).unwrap_or(text).matches('\n').count() + 1
}

/// The words of the parser, without a value that they quote: it may be a verifier.
fn without_values(message: &str) -> &str {
    match message.split_once(": ") {
        Some((kind @ ("invalid type" | "invalid value" | "invalid length"), _)) => kind,
        _ => message,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn an_entry_made_for_a_user_is_read_back() {
        let verifier = Verifier::of_password("secret").unwrap();
        let all = entry("ann \"x\"", &verifier, &[]);
        let some = entry("bob", &verifier, &["a".to_owned(), "b c".to_owned()]);
        let users = parse(&format!("{all}\n{some}")).unwrap();
        let (ann, bob) = (&users["ann \"x\""], &users["bob"]);
        assert_eq!(ann.tables, Granted::All);
        assert!(ann.verifier().unwrap().accepts("secret"));
        assert!(bob.tables.includes("b c") && !bob.tables.includes("c"));
        assert!(bob.weight == 1 && !bob.admin);
        assert_eq!((&ann.writes, &bob.writes), (&Granted::none(), &Granted::none()));
        let writer = parse(&(some.clone() + &entry_of_writes(&["a".to_owned()]))).unwrap();
        assert!(parse(&format!("{some}writes = ['hidden']")).is_err());
        assert!(writer["bob"].writes.includes("a") && !writer["bob"].writes.includes("b c"));
    }

    #[test]
    fn a_wrong_line_is_told_but_not_quoted() {
        for (text, line) in [
            ("[users.a]\nverifier = SCRAM-SHA-256$4096:salt\n", 2),
            ("\n[users]\na = 'SCRAM-SHA-256$4096:salt'\n", 3),
            ("[users.a]\nverifier = 'x'\npassword = 'salt'\n", 3),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(&format!("line {line}:")) && !error.contains("salt"), "{error}");
        }
    }

    #[test]
    fn all_wrong_entries_are_named() {
        let good = Verifier::of_password("secret").unwrap();
        let text = format!(
            "[users.a]\nverifier = 'md5'\n[users.b]\nverifier = '{good}'\nweight = 0\n\
             [users.c]\nverifier = '{good}'\ntables = 'all'\n[users.d]\nverifier = '{good}'"
        );
        let error = parse(&text).unwrap_err().to_string();
        for name in ["`a`", "`b`", "`c`"] {
            assert!(error.contains(name), "{error}");
        }
        assert!(!error.contains("`d`"), "{error}");
        assert!(parse("[users.a]\npassword = 'x'").is_err());
    }
}
