//! Whether two answers to a query are equal.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;

use arrow::array::RecordBatch;
use arrow::datatypes::DataType;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::common::exec_err;
use datafusion::error::Result;
use datafusion::prelude::SessionContext;
use futures::FutureExt;

use crate::random_queries::query::Query;

/// The rows of an answer as text, in their order.
#[derive(Debug)]
pub(crate) struct Answer {
    types: Vec<DataType>,
    pub(crate) rows: Vec<Vec<String>>,
}

impl Answer {
    /// Runs a query. A panic of an operator counts as an error.
    pub(crate) async fn of(context: &SessionContext, sql: &str) -> Result<Self> {
        let answer = AssertUnwindSafe(Self::of_query(context, sql)).catch_unwind();
        answer.await.unwrap_or_else(|_| exec_err!("an operator panicked"))
    }

    async fn of_query(context: &SessionContext, sql: &str) -> Result<Self> {
        let frame = context.sql(sql).await?;
        let fields = frame.schema().fields();
        let types = fields.iter().map(|field| field.data_type().clone()).collect();
        Self::of_batches(types, &frame.collect().await?)
    }

    /// The answer that these batches are.
    pub(crate) fn of_batches(types: Vec<DataType>, batches: &[RecordBatch]) -> Result<Self> {
        let mut rows = Vec::new();
        for batch in batches {
            push_rows(batch, &mut rows)?;
        }
        Ok(Self { types, rows })
    }

    /// The first difference from a correct answer. `unlimited` is the answer to the query without its limit, if the
    /// query does not determine which rows the limit takes.
    pub(crate) fn compare(
        &self,
        expected: &Self,
        query: &Query,
        unlimited: Option<&Self>,
    ) -> std::result::Result<(), String> {
        if self.types != expected.types {
            return Err(format!("types {:?} for {:?}", self.types, expected.types));
        }
        if self.rows.len() != expected.rows.len() {
            return Err(format!("{} rows for {}", self.rows.len(), expected.rows.len()));
        }
        for (number, (actual, expected)) in self.rows.iter().zip(&expected.rows).enumerate() {
            let differs = |&&place: &&usize| actual[place] != expected[place];
            if let Some(place) = query.order.iter().find(differs) {
                return Err(format!(
                    "row {number} has o{place} = {} for {}",
                    actual[*place], expected[*place]
                ));
            }
        }
        let (mut counts, allowed) = (self.counts(), unlimited.unwrap_or(expected).counts());
        counts.retain(|row, count| *count > allowed.get(row).copied().unwrap_or(0));
        match counts.pop_first() {
            Some((row, count)) => Err(format!("{row:?} is there {count} times, too often")),
            None => Ok(()),
        }
    }

    fn counts(&self) -> BTreeMap<&[String], usize> {
        let mut counts = BTreeMap::new();
        for row in &self.rows {
            *counts.entry(row.as_slice()).or_default() += 1;
        }
        counts
    }
}

fn push_rows(batch: &RecordBatch, rows: &mut Vec<Vec<String>>) -> Result<()> {
    let options = FormatOptions::new().with_null("NULL");
    let columns = batch.columns().iter().map(|array| ArrayFormatter::try_new(array, &options));
    let columns = columns.collect::<std::result::Result<Vec<_>, _>>()?;
    for row in 0..batch.num_rows() {
        rows.push(columns.iter().map(|column| column.value(row).to_string()).collect());
    }
    Ok(())
}
