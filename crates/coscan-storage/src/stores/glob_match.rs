//! Finds the files of a store that match a pattern, in as few directories as possible.

use futures::{StreamExt, TryStreamExt, future, stream};
use glob::{MatchOptions, Pattern, PatternError};
use object_store::path::Path;
use object_store::{ListResult, ObjectMeta, ObjectStore, Result};

/// The options of matching: `*` and `?` stay within a segment, and names that begin with a dot must be spelled out.
const OPTIONS: MatchOptions = MatchOptions {
    case_sensitive: true,
    require_literal_separator: true,
    require_literal_leading_dot: true,
};

/// Directories listed concurrently; each takes one request or more.
const LISTINGS_AT_A_TIME: usize = 16;

/// A pattern, checked, one step per level of directories.
#[derive(Debug, Clone)]
pub(super) struct GlobPattern {
    steps: Vec<Step>,
}

#[derive(Debug, Clone)]
enum Step {
    /// One directory or file name.
    Name { text: String, pattern: Pattern },
    /// `**` and what follows it, matched against the rest of the path.
    Rest { text: String, pattern: Pattern },
}

impl GlobPattern {
    /// # Errors
    /// If a segment is not a pattern, such as `a**` or an open bracket.
    pub(super) fn parse(segments: &[String]) -> Result<Self, PatternError> {
        let mut steps = Vec::new();
        for (index, segment) in segments.iter().enumerate() {
            if segment.contains("**") {
                let text = segments[index..].join("/");
                steps.push(Step::Rest { pattern: Pattern::new(&text)?, text });
                break;
            }
            steps.push(Step::Name { pattern: Pattern::new(segment)?, text: segment.clone() });
        }
        Ok(Self { steps })
    }

    /// The files below `base` that match, in no particular order.
    pub(super) async fn files(
        &self,
        store: &dyn ObjectStore,
        base: Path,
    ) -> Result<Vec<ObjectMeta>> {
        let mut files = Vec::new();
        let mut directories = vec![base];
        for (index, step) in self.steps.iter().enumerate() {
            let is_last = index + 1 == self.steps.len();
            // Collected before streaming: a closure over borrowed paths is not general enough for callers that spawn.
            let listings: Vec<_> =
                directories.iter().map(|directory| step.list(store, directory)).collect();
            let mut listings = stream::iter(listings).buffer_unordered(LISTINGS_AT_A_TIME);
            let mut next = Vec::new();
            while let Some((below, found)) = listings.try_next().await? {
                next.extend(below);
                if is_last {
                    files.extend(found);
                }
            }
            drop(listings);
            directories = next;
        }
        Ok(files)
    }
}

impl Step {
    /// The directories and the files of a directory that match.
    async fn list(
        &self,
        store: &dyn ObjectStore,
        directory: &Path,
    ) -> Result<(Vec<Path>, Vec<ObjectMeta>)> {
        match self {
            Self::Name { text, pattern } => {
                let ListResult { mut common_prefixes, mut objects, .. } =
                    store.list_with_delimiter(Some(directory)).await?;
                common_prefixes.retain(|below| is_match(text, pattern, below.filename()));
                objects.retain(|file| is_match(text, pattern, file.location.filename()));
                Ok((common_prefixes, objects))
            }
            Self::Rest { text, pattern } => {
                let is_wanted = |file: &ObjectMeta| {
                    future::ready(is_match(text, pattern, relative(&file.location, directory)))
                };
                let below = store.list(Some(directory));
                Ok((Vec::new(), below.try_filter(is_wanted).try_collect().await?))
            }
        }
    }
}

/// The part of `path` below `directory`, if it is below it.
pub(super) fn relative<'a>(path: &'a Path, directory: &Path) -> Option<&'a str> {
    let below = path.as_ref().strip_prefix(directory.as_ref())?;
    Some(below.strip_prefix('/').unwrap_or(below))
}

/// Whether a file is hidden by the convention of Spark and others: half-written and bookkeeping files. `_x=1` is a
/// partition of a column `_x`.
pub(super) fn is_hidden(segment: &str) -> bool {
    segment.starts_with('.') || (segment.starts_with('_') && !segment.contains('='))
}

fn is_match(text: &str, pattern: &Pattern, name: Option<&str>) -> bool {
    let Some(name) = name else { return false };
    // The pattern handles leading dots, but not underscores.
    let spells_out_hidden = text.split('/').any(|segment| segment.starts_with('_'));
    let is_skipped = name.split('/').any(|segment| segment.starts_with('_') && is_hidden(segment));
    pattern.matches_with(name, OPTIONS) && (spells_out_hidden || !is_skipped)
}
