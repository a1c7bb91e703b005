//! Which files of a store match a pattern, looking at no more directories than needed.

use futures::TryStreamExt;
use glob::{MatchOptions, Pattern, PatternError};
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore, Result};

/// `*` and `?` stay within a segment; names that begin with a dot must be spelled out.
const OPTIONS: MatchOptions = MatchOptions {
    case_sensitive: true,
    require_literal_separator: true,
    require_literal_leading_dot: true,
};

/// A pattern, checked, one step per level of directories.
#[derive(Debug, Clone)]
pub(super) struct GlobPattern {
    steps: Vec<Step>,
}

#[derive(Debug, Clone)]
enum Step {
    /// One directory or file name.
    Name { text: String, pattern: Pattern },
    /// `**` and all that follows it: a match on the rest of the path.
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

    /// The files below `base` that match. In no particular order.
    pub(super) async fn files(
        &self,
        store: &dyn ObjectStore,
        base: Path,
    ) -> Result<Vec<ObjectMeta>> {
        let mut files = Vec::new();
        let mut directories = vec![base];
        for (index, step) in self.steps.iter().enumerate() {
            let is_last = index + 1 == self.steps.len();
            let mut next = Vec::new();
            for directory in directories {
                match step {
                    Step::Name { text, pattern } => {
                        let listed = store.list_with_delimiter(Some(&directory)).await?;
                        if is_last {
                            files.extend(
                                listed.objects.into_iter().filter(|file| {
                                    is_match(text, pattern, file.location.filename())
                                }),
                            );
                        } else {
                            next.extend(
                                listed.common_prefixes.into_iter().filter(|directory| {
                                    is_match(text, pattern, directory.filename())
                                }),
                            );
                        }
                    }
                    Step::Rest { text, pattern } => {
                        let below: Vec<_> = store.list(Some(&directory)).try_collect().await?;
                        files.extend(below.into_iter().filter(|file| {
                            is_match(text, pattern, relative(&file.location, &directory))
                        }));
                    }
                }
            }
            directories = next;
        }
        Ok(files)
    }
}

/// The part of `path` below `directory`, if it is below it.
pub(super) fn relative<'a>(path: &'a Path, directory: &Path) -> Option<&'a str> {
    let below = path.as_ref().strip_prefix(directory.as_ref())?;
    Some(below.strip_prefix('/').unwrap_or(below))
}

/// Hidden by the convention of Spark and others: half-written and bookkeeping files. `_x=1` is a
/// partition of a column `_x`.
pub(super) fn is_hidden(segment: &str) -> bool {
    segment.starts_with('.') || (segment.starts_with('_') && !segment.contains('='))
}

fn is_match(text: &str, pattern: &Pattern, name: Option<&str>) -> bool {
    let Some(name) = name else { return false };
    // Dots are the pattern's business; it knows nothing of underscores.
    let spells_out_hidden = text.split('/').any(|segment| segment.starts_with('_'));
    let is_skipped = name.split('/').any(|segment| segment.starts_with('_') && is_hidden(segment));
    pattern.matches_with(name, OPTIONS) && (spells_out_hidden || !is_skipped)
}
