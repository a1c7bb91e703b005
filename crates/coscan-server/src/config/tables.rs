//! The locations of tables.

use serde::Deserialize;

/// The location of a table: `"s3://bucket/trips/"`, or with replicas
/// `{ location = "s3://bucket/trips/", replicas = ["s3://bucket/trips_by_city/"] }`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "Text")]
pub struct TableLocation {
    /// A file, directory, pattern or URL of Parquet files, or the directory of a Delta table.
    pub location: String,
    /// The locations of replicas, which are other files with the same rows, in another order or other row groups. Each
    /// scan reads the copy with the fewest bytes for its filters and columns.
    pub replicas: Vec<String>,
}

impl TableLocation {
    /// Whether a location is missing.
    pub(super) fn is_incomplete(&self) -> bool {
        self.location.is_empty() || self.replicas.iter().any(String::is_empty)
    }
}

impl From<String> for TableLocation {
    fn from(location: String) -> Self {
        Self { location, replicas: Vec::new() }
    }
}

/// The forms in the configuration file.
#[derive(Deserialize)]
#[serde(untagged, expecting = "a location, or a table with `location` and `replicas`")]
enum Text {
    Location(String),
    WithReplicas(WithReplicas),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WithReplicas {
    location: String,
    #[serde(default)]
    replicas: Vec<String>,
}

impl From<Text> for TableLocation {
    fn from(text: Text) -> Self {
        match text {
            Text::Location(location) => location.into(),
            Text::WithReplicas(WithReplicas { location, replicas }) => Self { location, replicas },
        }
    }
}
