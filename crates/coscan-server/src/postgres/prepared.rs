//! Prepared statements and portals of a connection.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::common::ParamValues;
use pgwire::api::Type;
use pgwire::api::portal::Format;

use crate::engine::Planned;
use crate::postgres::cursor_statements::CursorStatement;
use crate::postgres::rows::Rows;
use crate::postgres::sqlstate::{
    INVALID_CURSOR_NAME, INVALID_STATEMENT_NAME, LIMIT_EXCEEDED, PgError,
};

/// The most of each that a connection may have.
const COUNT_MAX: usize = 10_000;

/// A statement that is planned.
#[derive(Clone, Debug)]
pub(super) struct Prepared {
    /// `None` for an empty statement, FETCH and CLOSE. For DECLARE it is the query.
    pub(super) planned: Option<Planned>,
    pub(super) types: Vec<Type>,
    /// `None` if it concerns no cursor.
    pub(super) cursor: Option<CursorStatement>,
}

/// A statement with its parameters.
#[derive(Debug)]
pub(super) struct Portal {
    pub(super) prepared: Arc<Prepared>,
    pub(super) format: Format,
    pub(super) progress: Progress,
}

/// How far a portal is.
#[derive(Debug)]
pub(super) enum Progress {
    NotStarted(ParamValues),
    /// Some rows were sent.
    Suspended(Box<Rows>),
    Ended,
}

/// All of a connection.
#[derive(Debug, Default)]
pub(super) struct PreparedStatements {
    statements: HashMap<String, Arc<Prepared>>,
    portals: HashMap<String, Portal>,
}

impl PreparedStatements {
    pub(super) fn add_statement(
        &mut self,
        name: String,
        prepared: Prepared,
    ) -> Result<(), PgError> {
        if !name.is_empty() && self.statements.contains_key(&name) {
            return Err(PgError::new(
                "42P05",
                format!("prepared statement \"{name}\" already exists"),
            ));
        }
        check_count(self.statements.len())?;
        self.statements.insert(name, Arc::new(prepared));
        Ok(())
    }

    pub(super) fn statement(&self, name: &str) -> Result<&Arc<Prepared>, PgError> {
        self.statements.get(name).ok_or_else(|| {
            PgError::new(
                INVALID_STATEMENT_NAME,
                format!("there is no prepared statement \"{name}\""),
            )
        })
    }

    pub(super) fn add_portal(&mut self, name: String, portal: Portal) -> Result<(), PgError> {
        if !name.is_empty() && self.portals.contains_key(&name) {
            return Err(PgError::new("42P03", format!("portal \"{name}\" already exists")));
        }
        check_count(self.portals.len())?;
        self.portals.insert(name, portal);
        Ok(())
    }

    pub(super) fn portal(&mut self, name: &str) -> Result<&mut Portal, PgError> {
        self.portals.get_mut(name).ok_or_else(|| {
            PgError::new(INVALID_CURSOR_NAME, format!("there is no portal \"{name}\""))
        })
    }

    /// Closing what is not there is no error.
    pub(super) fn close_statement(&mut self, name: &str) {
        self.statements.remove(name);
    }

    pub(super) fn close_portal(&mut self, name: &str) {
        self.portals.remove(name);
    }

    /// Closes all portals: their queries end.
    pub(super) fn close_portals(&mut self) {
        self.portals.clear();
    }

    /// Closes all statements and portals.
    pub(super) fn clear(&mut self) {
        self.statements.clear();
        self.portals.clear();
    }

    /// Whether a query waits for its client to ask for more rows.
    pub(super) fn has_suspended(&self) -> bool {
        self.portals.values().any(|portal| matches!(portal.progress, Progress::Suspended(_)))
    }
}

fn check_count(count: usize) -> Result<(), PgError> {
    if count < COUNT_MAX {
        return Ok(());
    }
    let text =
        format!("a connection has at most {COUNT_MAX} prepared statements and portals; close some");
    Err(PgError::new(LIMIT_EXCEEDED, text))
}

/// The format of results from the codes in a message.
pub(super) fn format(codes: &[i16]) -> Format {
    match codes {
        [] => Format::UnifiedText,
        [code] => Format::from(*code),
        codes => Format::Individual(codes.to_vec()),
    }
}
