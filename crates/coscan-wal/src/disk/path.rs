//! Relative paths.

use std::io;

/// Refuses paths that are not plain relative ones.
pub(super) fn check(path: &str) -> io::Result<()> {
    let plain = |part: &str| !matches!(part, "" | "." | "..") && !part.contains(['\\', '\0']);
    if path.is_empty() || path.split('/').all(plain) {
        return Ok(());
    }
    let text = format!("{path:?} is not a relative path inside the directory");
    Err(io::Error::new(io::ErrorKind::InvalidInput, text))
}

/// The directory of a path; the root for a single name.
pub(crate) fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(directory, _)| directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_out_of_the_tree_are_refused() {
        for path in ["", "a", "a/b.c", "a/..b"] {
            assert!(check(path).is_ok(), "{path}");
        }
        for path in ["/a", "a/", "a//b", "..", "a/../b", "."] {
            assert!(check(path).is_err(), "{path}");
        }
        assert_eq!([parent("a"), parent("a/b"), parent("a/b/c")], ["", "a", "a/b"]);
    }
}
