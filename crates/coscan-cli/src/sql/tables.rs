//! The tables of a session that are files.

#[cfg(feature = "delta")]
use coscan_datafusion::CoscanOptions;
use datafusion::common::TableReference;
use datafusion::error::Result as EngineResult;

use crate::Failure;
use crate::sql::session::Session;

impl Session {
    /// Adds a table of Parquet files, with replicas, or a Delta table.
    pub(super) async fn add_table(
        &mut self,
        name: &str,
        url: &str,
        replicas: &[&str],
    ) -> Result<(), Failure> {
        let replicas = replicas.iter().map(|url| format!("\"{}\"", url.replace('"', "\"\"")));
        let replicas = replicas.collect::<Vec<_>>().join(", ");
        let options = (!replicas.is_empty()).then(|| ("replicas".to_owned(), replicas));
        let created = self.create_external_table(name, url, options.as_slice()).await;
        created.map_err(|error| self.failure(error))?;
        self.tables.push(name.to_owned());
        Ok(())
    }

    /// Creates a table of Parquet files, or a Delta table, with the options of `CREATE EXTERNAL TABLE`, in place of one of the same
    /// name.
    ///
    /// # Errors
    /// If the files do not form one.
    pub async fn create_table(
        &self,
        name: &str,
        url: &str,
        options: &[(String, String)],
    ) -> EngineResult<()> {
        let table = TableReference::bare(name);
        let replaced = self.context().deregister_table(table.clone())?;
        let created = self.create_external_table(name, url, options).await;
        if let (Err(_), Some(replaced)) = (&created, replaced) {
            self.context().register_table(table, replaced)?;
        }
        created
    }

    async fn create_external_table(
        &self,
        name: &str,
        url: &str,
        options: &[(String, String)],
    ) -> EngineResult<()> {
        let format = self.format_of(url).await?;
        let text = |text: &str| format!("'{}'", text.replace('\'', "''"));
        let (quoted, url) = (name.replace('"', "\"\""), text(url));
        let mut sql =
            format!("CREATE EXTERNAL TABLE \"{quoted}\" STORED AS {format} LOCATION {url}");
        if !options.is_empty() {
            let options =
                options.iter().map(|(name, value)| format!("{} {}", text(name), text(value)));
            sql += &format!(" OPTIONS ({})", options.collect::<Vec<_>>().join(", "));
        }
        self.context().sql(&sql).await?.collect().await?;
        Ok(())
    }

    /// The format of the table at a location, as STORED AS names it.
    #[cfg_attr(not(feature = "delta"), allow(clippy::unused_async))]
    async fn format_of(&self, _url: &str) -> EngineResult<&'static str> {
        #[cfg(feature = "delta")]
        if let Some(coscan) = CoscanOptions::of(self.context().state().config())
            && coscan_delta::is_table(coscan.stores(), _url).await?
        {
            return Ok("DELTA");
        }
        Ok("PARQUET")
    }
}
