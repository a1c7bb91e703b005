//! Prefixes of files, which say what other servers may read.

use object_store::path::Path;
use url::{Position, Url};

/// Prefixes of files, as URLs of directories or stores, such as `s3://bucket/sales/`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prefixes(Vec<Url>);

impl From<Vec<Url>> for Prefixes {
    fn from(prefixes: Vec<Url>) -> Self {
        Self(prefixes)
    }
}

impl Prefixes {
    /// The prefixes, in the order in which they were given.
    pub fn iter(&self) -> impl Iterator<Item = &Url> {
        self.0.iter()
    }

    /// Whether a file is below one of them. Its name is an address as a [`FileVersion`](crate::table::FileVersion)
    /// displays it.
    #[must_use]
    pub fn contain(&self, file: &str) -> bool {
        // Some stores decode a path once more. It must not leave the prefix even then.
        let goes_up = |segment: &str| segment.to_ascii_lowercase().replace("%2e", ".") == "..";
        let is_below = |prefix: &Url| {
            let rest = file.strip_prefix(decoded(prefix).trim_end_matches('/'));
            rest.is_some_and(|rest| rest.starts_with('/'))
        };
        !file.split('/').any(goes_up) && self.0.iter().any(is_below)
    }
}

/// A prefix in the form of file names: with a space where the URL has `%20`.
fn decoded(prefix: &Url) -> String {
    match Path::from_url_path(prefix.path()) {
        Ok(path) => format!("{}/{path}", &prefix[..Position::BeforePath]),
        Err(_) => prefix.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_below_a_prefix_are_contained_whatever_characters_it_has() {
        let prefixes = |prefix: &str| Prefixes::from(vec![Url::parse(prefix).expect("a URL")]);
        for (prefix, file) in [
            ("file:///data/my%20tables/", "file:///data/my tables/t.parquet"),
            ("file:///data/f%C3%BCr/", "file:///data/für/t.parquet"),
            ("file:///data", "file:///data/t.parquet"),
            ("s3://bucket", "s3://bucket/t.parquet"),
            ("s3://bucket/sales/", "s3://bucket/sales/2026/t.parquet"),
        ] {
            assert!(prefixes(prefix).contain(file), "{prefix} {file}");
        }
        for (prefix, file) in [
            ("file:///data/", "file:///database/t.parquet"),
            ("file:///data/", "file:///data/../secret/t.parquet"),
            ("file:///data/", "file:///data/%2E%2e/secret/t.parquet"),
            ("s3://bucket/sales/", "s3://bucket/t.parquet"),
            ("s3://bucket", "s3://bucket2/t.parquet"),
        ] {
            assert!(!prefixes(prefix).contain(file), "{prefix} {file}");
        }
    }
}
