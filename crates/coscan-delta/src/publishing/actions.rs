//! The actions of a commit, as JSON.

use serde_json::{Value, json};
use uuid::Uuid;

use crate::publishing::schema::DeltaSchema;

/// Before the number of a table, in the name under which a commit says which version it has.
const APP_ID: &str = "coscan-table-";

/// The name under which a commit says which version it has of the table with this number.
pub(super) fn app_id(table: u64) -> String {
    format!("{APP_ID}{table}")
}

/// The actions of a commit.
pub(super) struct Commit {
    table: u64,
    lsn: u64,
    /// In milliseconds since 1970.
    now: i64,
    /// Actions but those that say who has written the commit.
    actions: Vec<Value>,
    has_removed: bool,
}

impl Commit {
    /// A commit without actions, of the table of this number as of a commit of its database.
    pub(super) fn new(table: u64, lsn: u64, now: i64) -> Self {
        Self { table, lsn, now, actions: Vec::new(), has_removed: false }
    }

    /// Gives a new table its name and columns.
    pub(super) fn create(&mut self, name: &str, schema: &DeltaSchema) {
        let protocol = match schema.has_timestamp_ntz {
            false => json!({ "minReaderVersion": 1, "minWriterVersion": 2 }),
            true => json!({
                "minReaderVersion": 3,
                "minWriterVersion": 7,
                "readerFeatures": ["timestampNtz"],
                "writerFeatures": ["timestampNtz", "appendOnly", "invariants"],
            }),
        };
        let metadata = json!({
            "id": Uuid::new_v4().to_string(),
            "name": name,
            "format": { "provider": "parquet", "options": {} },
            "schemaString": schema.json,
            "partitionColumns": [],
            "configuration": {},
            "createdTime": self.now,
        });
        self.actions.push(json!({ "protocol": protocol }));
        self.actions.push(json!({ "metaData": metadata }));
    }

    /// Adds a file of so many bytes and rows.
    pub(super) fn add(&mut self, path: &str, bytes: u64, rows: u64) {
        self.actions.push(json!({ "add": {
            "path": path,
            "partitionValues": {},
            "size": bytes,
            "modificationTime": self.now,
            "dataChange": true,
            "stats": json!({ "numRecords": rows }).to_string(),
        } }));
    }

    /// Removes a file.
    pub(super) fn remove(&mut self, path: &str) {
        self.has_removed = true;
        self.actions.push(json!({ "remove": {
            "path": path,
            "deletionTimestamp": self.now,
            "dataChange": true,
        } }));
    }

    /// The content of the commit's file: an action in each line.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let Self { table, lsn, now, actions, has_removed } = self;
        let mode = if *has_removed { "Overwrite" } else { "Append" };
        let info = json!({ "commitInfo": {
            "timestamp": now,
            "operation": "WRITE",
            "operationParameters": { "mode": mode },
            "engineInfo": concat!("coscan/", env!("CARGO_PKG_VERSION")),
        } });
        let transaction =
            json!({ "txn": { "appId": app_id(*table), "version": lsn, "lastUpdated": now } });
        let lines = [&info, &transaction].into_iter().chain(actions);
        lines.map(|action| format!("{action}\n")).collect::<String>().into_bytes()
    }
}

/// Who has written a commit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum CommitOrigin {
    /// coscan.
    Coscan,
    /// Another engine, which left all rows as they were.
    ForeignRewrite,
    /// Another engine, which changed rows, columns, properties or features.
    ForeignChange,
}

impl CommitOrigin {
    /// Who has written the commit with this content.
    ///
    /// # Errors
    /// If a line is not JSON.
    pub(super) fn of(content: &[u8]) -> serde_json::Result<Self> {
        let mut origin = Self::ForeignRewrite;
        let lines = content.split(|byte| *byte == b'\n');
        for line in lines.filter(|line| !line.trim_ascii().is_empty()) {
            let action: Value = serde_json::from_slice(line)?;
            if action["txn"]["appId"].as_str().is_some_and(|id| id.starts_with(APP_ID)) {
                return Ok(Self::Coscan);
            }
            let file = action.get("add").or_else(|| action.get("remove"));
            let keeps_rows = match file {
                Some(file) => file["dataChange"] == false,
                None => action.get("commitInfo").or_else(|| action.get("txn")).is_some(),
            };
            if !keeps_rows {
                origin = Self::ForeignChange;
            }
        }
        Ok(origin)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn commits_tell_who_has_written_them() {
        let origin = |lines: &str| CommitOrigin::of(lines.as_bytes()).unwrap();
        let commit = Commit::new(7, 9, 1).to_bytes();
        assert_eq!(CommitOrigin::of(&commit).unwrap(), CommitOrigin::Coscan);
        let rewrite = "{\"commitInfo\":{}}\n{\"add\":{\"dataChange\":false}}\n{\"remove\":{\"dataChange\":false}}\n";
        assert_eq!(origin(rewrite), CommitOrigin::ForeignRewrite);
        for change in [
            "{\"add\":{}}",
            "{\"remove\":{\"dataChange\":true}}",
            "{\"metaData\":{}}",
            "{\"cdc\":{}}",
        ] {
            assert_eq!(
                origin(&format!("{rewrite}{change}\n")),
                CommitOrigin::ForeignChange,
                "{change}"
            );
        }
        assert!(CommitOrigin::of(b"{\"add\"").is_err());
    }
}
