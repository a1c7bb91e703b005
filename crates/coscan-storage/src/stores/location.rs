//! Parses locations into a URL and a pattern.

use std::path::{Component, Path, PathBuf};

use url::Url;

use super::error::StoreError;
use super::local_device::on_device;

/// A parsed location.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Location {
    /// The part before the first segment with a wildcard, or all of it.
    pub(super) base: Url,
    /// The segments from the first with a wildcard on. Empty if there is none.
    pub(super) pattern: Vec<String>,
    /// Whether the text ended in a slash, so that it must be a directory.
    pub(super) is_directory: bool,
}

/// The longest URL, in bytes: longer ones cannot be sent in a request.
pub const URL_LENGTH_MAX: usize = 16 << 10;

impl Location {
    /// # Errors
    /// If the syntax is wrong, or a path goes up (`..`) from a directory that does not exist.
    pub(super) async fn parse(text: &str) -> Result<Self, StoreError> {
        if text.trim().is_empty() {
            return Err(wrong(text, "it is empty. Write a path or a URL"));
        }
        match url_path_start(text) {
            Some(path_start) => Self::parse_url(text, path_start),
            None => Self::parse_path(text).await,
        }
    }

    fn parse_url(text: &str, path_start: usize) -> Result<Self, StoreError> {
        check_length(text)?;
        let is_web = text.starts_with("http://") || text.starts_with("https://");
        if is_web && text.contains('?') {
            return Err(wrong(text, "a query after ? cannot be sent. Use a URL without one"));
        }
        // The host may be in brackets (IPv6), so wildcards count in the path only.
        let (base, pattern) = split_pattern(text, path_start);
        // Only web URLs have fragments; elsewhere `#` is a character of a name.
        let base = if is_web { base.to_owned() } else { base.replace('#', "%23") };
        let base = Url::parse(&base).map_err(|error| {
            wrong(text, &format!("{error}. Write scheme://host/path, or a path without ://"))
        })?;
        Ok(Self { base, pattern, is_directory: text.ends_with('/') })
    }

    async fn parse_path(text: &str) -> Result<Self, StoreError> {
        // A file whose name looks like a pattern is that file.
        let absolute_path = std::path::absolute(text).unwrap_or_else(|_| text.into());
        let exists = on_device(&absolute_path, Path::exists).await;
        let exists = exists.map_err(|error| wrong(text, &error.to_string()))?;
        let (base, pattern) = if exists { (text, Vec::new()) } else { split_pattern(text, 0) };
        let base = absolute(text, if base.is_empty() { "." } else { base }).await?;
        let base = Url::from_file_path(&base)
            .map_err(|()| wrong(text, "it has no absolute form. Write the path from the root"))?;
        Ok(Self { base, pattern, is_directory: text.ends_with(std::path::is_separator) })
    }
}

/// The position of the path in a URL; `None` if the text is a plain path.
fn url_path_start(text: &str) -> Option<usize> {
    match text.find("://") {
        Some(scheme_end) => {
            let host_start = scheme_end + "://".len();
            let host_bytes = text[host_start..].find('/').unwrap_or(text.len() - host_start);
            Some(host_start + host_bytes)
        }
        None => text.starts_with("file:/").then_some("file:".len()),
    }
}

/// Splits before the first segment with a wildcard at or after `path_start`.
fn split_pattern(text: &str, path_start: usize) -> (&str, Vec<String>) {
    let Some(wildcard) = text[path_start..].find(['*', '?', '[']) else {
        return (text, Vec::new());
    };
    let before = &text[..path_start + wildcard];
    let split = before.rfind('/').map_or(path_start, |slash| slash + 1);
    let segments = text[split..].split('/').filter(|segment| !segment.is_empty());
    (&text[..split], segments.map(str::to_owned).collect())
}

async fn absolute(text: &str, base: &str) -> Result<PathBuf, StoreError> {
    let path = std::path::absolute(base).map_err(|error| wrong(text, &error.to_string()))?;
    let goes_up = path.components().any(|component| component == Component::ParentDir);
    if !goes_up {
        return Ok(path);
    }
    // Object stores have no "..". It depends on symbolic links, so the file system resolves it.
    let resolved = on_device(&path, |path| path.canonicalize()).await;
    resolved.map_err(|error| wrong(text, &error.to_string()))?.map_err(|_| not_found(text))
}

pub(super) fn not_found(text: &str) -> StoreError {
    let start = || std::env::current_dir().unwrap_or_else(|_| Path::new(".").to_path_buf());
    let start = url_path_start(text).is_none().then(|| start().display().to_string());
    StoreError::NotFound { location: text.to_owned(), start }
}

/// # Errors
/// If a URL is too long to be sent.
pub(super) fn check_length(url: &str) -> Result<(), StoreError> {
    if url.len() <= URL_LENGTH_MAX {
        return Ok(());
    }
    let start: String = url.chars().take(80).collect();
    let reason = format!("it has {} bytes; {URL_LENGTH_MAX} is the limit", url.len());
    Err(wrong(&format!("{start}…"), &reason))
}

pub(super) fn wrong(text: &str, reason: &str) -> StoreError {
    StoreError::WrongLocation { location: text.to_owned(), reason: reason.to_owned() }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_pattern_starts_at_the_first_segment_with_a_wildcard() {
        let location = Location::parse("s3://bucket/a/b*/c/**").await.unwrap();
        assert_eq!(location.base.as_str(), "s3://bucket/a/");
        assert_eq!(location.pattern, ["b*", "c", "**"]);
    }

    #[tokio::test]
    async fn brackets_around_a_host_are_no_pattern() {
        let location = Location::parse("http://[::1]:80/a.parquet").await.unwrap();
        assert_eq!(location.base.as_str(), "http://[::1]/a.parquet");
        assert!(location.pattern.is_empty());
    }

    #[tokio::test]
    async fn a_file_url_may_have_one_slash() {
        let location = Location::parse("file:/a/b.parquet").await.unwrap();
        assert_eq!(location.base.as_str(), "file:///a/b.parquet");
    }
}
