//! Prepared statements and portals of a connection.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::common::ParamValues;
use pgwire::api::Type;
use pgwire::api::portal::Format;
use tokio::time::Instant;

use crate::postgres::connection_statements::{ConnectionStatement, Lifetime};
use crate::postgres::copy_statements::Copy;
use crate::postgres::rows::Rows;
use crate::postgres::sqlstate::{
    INVALID_CURSOR_NAME, INVALID_STATEMENT_NAME, LIMIT_EXCEEDED, PgError,
};
use crate::sql::Planned;

/// The maximum number of statements, and of portals, of a connection.
const COUNT_MAX: usize = 10_000;

/// The maximum bytes of plans and values that the statements and portals of a connection have together.
const BYTES_MAX: usize = 16 << 20;

/// A planned statement.
#[derive(Clone, Debug)]
pub(super) struct Prepared {
    /// `None` for an empty statement, FETCH, CLOSE and DEALLOCATE. For DECLARE it is the plan of the query.
    pub(super) planned: Option<Planned>,
    pub(super) types: Vec<Type>,
    /// `None` if it concerns neither cursors nor prepared statements.
    pub(super) cursor: Option<ConnectionStatement>,
    /// `None` if its result is sent as rows.
    pub(super) copy: Option<Copy>,
}

/// A statement with its parameters.
#[derive(Debug)]
pub(super) struct Portal {
    pub(super) prepared: Arc<Prepared>,
    pub(super) format: Format,
    pub(super) progress: Progress,
    pub(super) lifetime: Lifetime,
}

/// The progress of a portal.
#[derive(Debug)]
pub(super) enum Progress {
    NotStarted(ParamValues),
    /// Some rows were sent, the last ones at this time.
    Suspended(Box<Rows>, Instant),
    Ended,
}

impl Prepared {
    fn bytes(&self) -> usize {
        let cursor = self.cursor.as_ref().map_or(0, ConnectionStatement::bytes);
        let copy = self.copy.as_ref().map_or(0, Copy::bytes);
        let planned = self.planned.as_ref().map_or(0, Planned::bytes);
        planned + size_of_val(&self.types[..]) + cursor + copy
    }
}

impl Portal {
    fn suspended_since(&self) -> Option<Instant> {
        match self.progress {
            Progress::Suspended(_, since) => Some(since),
            _ => None,
        }
    }

    /// The bytes of the portal and its statement, which it may outlive.
    fn bytes(&self) -> usize {
        let values = match &self.progress {
            Progress::NotStarted(ParamValues::List(values)) => &values[..],
            _ => &[],
        };
        let format = match &self.format {
            Format::Individual(codes) => size_of_val(&codes[..]),
            _ => 0,
        };
        let values: usize = values.iter().map(|value| value.value().size()).sum();
        self.prepared.bytes() + values + format
    }
}

/// Values by name, with the bytes of each.
#[derive(Debug)]
struct Named<T> {
    values: HashMap<String, (T, usize)>,
    bytes: usize,
}

impl<T> Default for Named<T> {
    fn default() -> Self {
        Self { values: HashMap::new(), bytes: 0 }
    }
}

impl<T> Named<T> {
    /// Adds a value. `others` are the bytes that other values of the connection take.
    fn add(&mut self, name: String, value: T, bytes: usize, others: usize) -> Result<(), PgError> {
        let bytes = bytes + name.len();
        if self.values.len() >= COUNT_MAX {
            let text = format!(
                "a connection has at most {COUNT_MAX} prepared statements and as many portals; close some"
            );
            return Err(PgError::new(LIMIT_EXCEEDED, text));
        }
        if self.bytes + others + bytes > BYTES_MAX {
            let text = format!(
                "the prepared statements and portals of a connection take at most {BYTES_MAX} bytes of plans \
                 and values; close some"
            );
            return Err(PgError::new(LIMIT_EXCEEDED, text));
        }
        self.bytes += bytes;
        self.values.insert(name, (value, bytes));
        Ok(())
    }

    fn remove(&mut self, name: &str) {
        if let Some((_, bytes)) = self.values.remove(name) {
            self.bytes -= bytes;
        }
    }
}

/// All statements and portals of a connection.
#[derive(Debug, Default)]
pub(super) struct PreparedStatements {
    statements: Named<Arc<Prepared>>,
    portals: Named<Portal>,
}

impl PreparedStatements {
    pub(super) fn add_statement(
        &mut self,
        name: String,
        prepared: Prepared,
    ) -> Result<(), PgError> {
        if self.statements.values.contains_key(&name) {
            return Err(PgError::new(
                "42P05",
                format!("prepared statement \"{name}\" already exists"),
            ));
        }
        let bytes = prepared.bytes();
        self.statements.add(name, Arc::new(prepared), bytes, self.portals.bytes)
    }

    pub(super) fn statement(&self, name: &str) -> Result<&Arc<Prepared>, PgError> {
        self.statements.values.get(name).map(|(prepared, _)| prepared).ok_or_else(|| {
            PgError::new(
                INVALID_STATEMENT_NAME,
                format!("there is no prepared statement \"{name}\""),
            )
        })
    }

    pub(super) fn add_portal(&mut self, name: String, portal: Portal) -> Result<(), PgError> {
        if self.portals.values.contains_key(&name) {
            return Err(PgError::new("42P03", format!("portal \"{name}\" already exists")));
        }
        let bytes = portal.bytes();
        self.portals.add(name, portal, bytes, self.statements.bytes)
    }

    pub(super) fn portal(&mut self, name: &str) -> Result<&mut Portal, PgError> {
        self.portals.values.get_mut(name).map(|(portal, _)| portal).ok_or_else(|| {
            PgError::new(INVALID_CURSOR_NAME, format!("there is no portal \"{name}\""))
        })
    }

    /// Closes a statement. A missing one is not an error.
    pub(super) fn close_statement(&mut self, name: &str) {
        self.statements.remove(name);
    }

    /// Closes the statements that have a name.
    pub(super) fn close_statements(&mut self) {
        let unnamed = self.statements.values.remove_entry("");
        self.statements = Named::default();
        if let Some((name, (statement, bytes))) = unnamed {
            self.statements.bytes = bytes;
            self.statements.values.insert(name, (statement, bytes));
        }
    }

    pub(super) fn close_portal(&mut self, name: &str) {
        self.portals.remove(name);
    }

    /// Closes all portals, which ends their queries.
    pub(super) fn close_portals(&mut self) {
        self.portals = Named::default();
    }

    /// Closes the portals that end with their transaction.
    pub(super) fn end_transaction(&mut self, is_committed: bool) {
        let ends = |portal: &Portal| match portal.lifetime {
            Lifetime::Transaction => true,
            Lifetime::Held => !is_committed,
            Lifetime::Connection => false,
        };
        self.close_portals_that(ends);
        for (portal, _) in self.portals.values.values_mut() {
            portal.lifetime = Lifetime::Connection;
        }
    }

    fn close_portals_that(&mut self, ends: impl Fn(&Portal) -> bool) {
        let ending = self.portals.values.iter().filter(|(_, (portal, _))| ends(portal));
        for name in ending.map(|(name, _)| name.clone()).collect::<Vec<_>>() {
            self.portals.remove(&name);
        }
    }

    /// Closes all statements and portals.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// The time since which a query waits for its client to request more rows, for the query that has waited longest.
    pub(super) fn suspended_since(&self) -> Option<Instant> {
        self.portals.values.values().filter_map(|(portal, _)| portal.suspended_since()).min()
    }

    /// Closes portals whose clients have not requested more rows since a time.
    pub(super) fn close_suspended(&mut self, since: Instant) {
        self.close_portals_that(|portal| {
            portal.suspended_since().is_some_and(|last| last <= since)
        });
    }
}

/// The format of results for the codes in a message.
pub(super) fn format(codes: &[i16]) -> Format {
    match codes {
        [] => Format::UnifiedText,
        [code] => Format::from(*code),
        codes => Format::Individual(codes.to_vec()),
    }
}
