//! Cursors, which are portals that SQL creates and reads with DECLARE, FETCH and CLOSE.

use std::sync::Arc;

use datafusion::common::ParamValues;
use pgwire::api::portal::Format;
use pgwire::messages::PgWireBackendMessage;
use pgwire::messages::response::{CommandComplete, TransactionStatus};
use tokio::io::AsyncWrite;

use crate::postgres::connection::{Connection, Failure};
use crate::postgres::connection_statements::{ConnectionStatement, Lifetime};
use crate::postgres::prepared::{Portal, Prepared, Progress};
use crate::postgres::rows::{description, fields};
use crate::postgres::sqlstate::{INVALID_CURSOR_NAME, NO_TRANSACTION, PgError};

impl<W: AsyncWrite + Unpin> Connection<W> {
    /// Runs a statement about cursors or prepared statements. `values` are those of the declared query. Rows are sent
    /// in `format`, after their description if the client expects it.
    pub(super) async fn run_cursor(
        &mut self,
        statement: &ConnectionStatement,
        query: Arc<Prepared>,
        values: ParamValues,
        format: Format,
        describe: bool,
    ) -> Result<(), Failure> {
        let tag = match statement {
            ConnectionStatement::Declare(name, lifetime) => {
                self.declare(name.clone(), *lifetime, query, values)?;
                "DECLARE CURSOR".to_owned()
            }
            ConnectionStatement::Fetch(name, rows_max) => {
                let cursor = self.cursor(name)?;
                let query = cursor.prepared.planned.as_ref();
                let described = query.map(|query| fields(&query.schema, &format)).transpose()?;
                let described = described.unwrap_or_default();
                match &cursor.progress {
                    Progress::NotStarted(_) => cursor.format = format,
                    Progress::Suspended(rows, _) => rows.check(&described)?,
                    Progress::Ended => {}
                }
                if describe {
                    self.writer.add(&description(&described))?;
                }
                let cancel = self.cancel_token();
                self.start_portal(name).await?;
                let (sent, _) = self.send_portal(name, *rows_max, &cancel).await?;
                format!("FETCH {sent}")
            }
            ConnectionStatement::Close(None) => {
                self.prepared.close_portals();
                "CLOSE CURSOR ALL".to_owned()
            }
            ConnectionStatement::Close(Some(name)) => {
                self.cursor(name)?;
                self.prepared.close_portal(name);
                "CLOSE CURSOR".to_owned()
            }
            ConnectionStatement::Deallocate(None) => {
                self.prepared.close_statements();
                "DEALLOCATE ALL".to_owned()
            }
            ConnectionStatement::Deallocate(Some(name)) => {
                self.prepared.statement(name)?;
                self.prepared.close_statement(name);
                "DEALLOCATE".to_owned()
            }
        };
        let complete = CommandComplete::new(tag);
        Ok(self.writer.add(&PgWireBackendMessage::CommandComplete(complete))?)
    }

    fn declare(
        &mut self,
        name: String,
        lifetime: Lifetime,
        query: Arc<Prepared>,
        values: ParamValues,
    ) -> Result<(), PgError> {
        if self.transaction == TransactionStatus::Idle && lifetime == Lifetime::Transaction {
            let text = "cursors live in transactions; send BEGIN first, or declare it WITH HOLD";
            return Err(PgError::new(NO_TRANSACTION, text));
        }
        let query = Prepared { cursor: None, ..Prepared::clone(&query) };
        let progress = Progress::NotStarted(values);
        let (prepared, format) = (Arc::new(query), Format::UnifiedText);
        let portal = Portal { prepared, format, progress, lifetime };
        self.prepared.add_portal(name, portal)
    }

    /// The cursor of this name. The portal without a name is not a cursor.
    fn cursor(&mut self, name: &str) -> Result<&mut Portal, PgError> {
        let unknown =
            || PgError::new(INVALID_CURSOR_NAME, format!("there is no cursor \"{name}\""));
        self.prepared.portal(name).ok().filter(|_| !name.is_empty()).ok_or_else(unknown)
    }
}
