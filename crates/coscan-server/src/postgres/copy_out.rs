//! `COPY … TO STDOUT` sends a result without the messages around each value, as text, CSV or binary. Drivers that read
//! many rows use it.

use datafusion::common::ParamValues;
use pgwire::messages::PgWireBackendMessage;
use pgwire::messages::copy::{CopyData, CopyDone, CopyOutResponse};
use pgwire::messages::response::CommandComplete;
use tokio::io::AsyncWrite;

use crate::postgres::connection::{Connection, Failure};
use crate::postgres::copy_statements::CopyOut;
use crate::postgres::row_forms::CopyForm;
use crate::postgres::rows::{Rows, fields};
use crate::sql::Planned;

/// The end of binary data, in place of the number of columns.
const BINARY_TRAILER: &[u8] = &[0xff, 0xff];

impl<W: AsyncWrite + Unpin> Connection<W> {
    /// Runs a query and copies its result.
    pub(super) async fn copy_out(
        &mut self,
        copy: &CopyOut,
        planned: &Planned,
        values: ParamValues,
    ) -> Result<(), Failure> {
        let (cancel, format) = (self.cancel_token(), copy.format());
        let query = self.run_planned(planned.clone(), values).await?;
        let columns = fields(&query.schema, &format)?;
        let is_binary = copy.form == CopyForm::Binary;
        let formats = vec![i16::from(is_binary); columns.len()];
        let count = i16::try_from(columns.len()).unwrap_or(i16::MAX);
        let response = CopyOutResponse::new(i8::from(is_binary), count, formats);
        self.writer.add(&PgWireBackendMessage::CopyOutResponse(response))?;
        let names = columns.iter().map(|column| column.name().to_owned());
        let mut header = copy.header(names).unwrap_or_default();
        if !is_binary && !header.is_empty() {
            let data = CopyData::new(std::mem::take(&mut header));
            self.writer.add(&PgWireBackendMessage::CopyData(data))?;
        }
        let mut rows = Rows::new(query, &format)?.copied(copy.form.clone(), header);
        let (sent, _) = self.send_rows(&mut rows, 0, &cancel).await?;
        let header = rows.into_header();
        if is_binary {
            let data = CopyData::new([&header, BINARY_TRAILER].concat().into());
            self.writer.add(&PgWireBackendMessage::CopyData(data))?;
        }
        self.writer.add(&PgWireBackendMessage::CopyDone(CopyDone::new()))?;
        let done = CommandComplete::new(format!("COPY {sent}"));
        Ok(self.writer.add(&PgWireBackendMessage::CommandComplete(done))?)
    }
}
