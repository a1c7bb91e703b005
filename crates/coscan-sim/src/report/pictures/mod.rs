//! The pictures of an experiment, chosen by its shape, not by its name.
//!
//! Few chunks and queries give a timeline of each chunk. One case gives bytes, kinds of queries, reads over time, and
//! sharing potential. A sweep of numbers gives curves. Another sweep gives points by throughput and latency.

mod runs;
mod sweeps;
mod whole;

use crate::experiment::Prepared;
use crate::spec::Spec;

use super::draw::figure::Figure;
use super::results::Results;

/// The most chunks of a timeline. One with more chunks, or queries, is too crowded to be read.
const TIMELINE_CHUNKS_MAX: usize = 64;
const TIMELINE_QUERIES_MAX: usize = 12;

/// Pictures of one kind, with a title and a caption.
#[derive(Clone, Debug)]
pub struct Section {
    /// The title.
    pub title: String,
    /// The caption, which explains how to read them.
    pub caption: String,
    /// The pictures.
    pub pictures: Vec<Picture>,
}

/// A picture, and a name for its file without an ending.
#[derive(Clone, Debug)]
pub struct Picture {
    /// The name.
    pub file_name: String,
    /// The picture.
    pub figure: Figure,
}

impl Section {
    fn one(title: &str, caption: String, file_name: &str, figure: Figure) -> Section {
        let picture = Picture { file_name: file_name.to_owned(), figure };
        Section { title: title.to_owned(), caption, pictures: vec![picture] }
    }
}

/// Whether the pictures of an experiment need the timelines of this case. They are then recorded for the first seed.
#[must_use]
pub fn need_timeline(spec: &Spec, prepared: &Prepared) -> bool {
    spec.cases.len() == 1 || is_small(prepared)
}

/// Whether a timeline of the case can be read.
fn is_small(prepared: &Prepared) -> bool {
    let tables = prepared.workload.tables.iter();
    let chunks: usize = tables.map(|table| table.layout.chunk_count()).sum();
    chunks <= TIMELINE_CHUNKS_MAX && prepared.standalone_ns.len() <= TIMELINE_QUERIES_MAX
}

/// The pictures of an experiment, the most telling first.
#[must_use]
pub fn sections(results: &Results<'_>) -> Vec<Section> {
    let timelines = runs::timelines(results);
    let loaded = timelines.is_none();
    let mut sections: Vec<Section> = timelines.into_iter().collect();
    if let [case] = results.cases().collect::<Vec<_>>()[..] {
        if loaded {
            sections.extend(runs::reads(results, case));
        }
        sections.push(whole::bytes(results, case));
        sections.extend(whole::kinds(results, case));
        if loaded {
            sections.extend(runs::potential(results, case));
        }
    } else {
        sections.extend(sweeps::sections(results));
    }
    sections
}

/// A text of letters, digits and dashes.
fn file_name(parts: &[&str]) -> String {
    let name = parts.iter().filter(|part| !part.is_empty()).copied().collect::<Vec<_>>().join("-");
    name.chars().map(|c| if c.is_alphanumeric() || c == '.' { c } else { '-' }).collect()
}
