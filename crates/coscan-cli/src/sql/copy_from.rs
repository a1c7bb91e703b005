//! `COPY t FROM 'FILE'` inserts the rows of a CSV or Parquet file.

use std::collections::BTreeSet;

use datafusion::arrow::datatypes::Schema;
use datafusion::common::{TableReference, plan_err};
use datafusion::error::Result as EngineResult;
use datafusion::prelude::{CsvReadOptions, ParquetReadOptions, SessionContext};
use datafusion::sql::planner::object_name_to_table_reference;
use datafusion::sql::sqlparser::ast::{CopyOption, CopySource, CopyTarget, Ident, Statement};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::Token;
use url::Url;

/// The name under which the rows of the file are inserted.
const ROWS: &str = "rows of COPY";

/// A statement that inserts the rows of a file.
#[derive(PartialEq, Debug)]
pub(super) struct CopyFrom {
    table: TableReference,
    /// The columns that the file has, in its order; none for those of the table.
    columns: Vec<String>,
    path: String,
    format: Format,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Format {
    Csv { has_header: bool, delimiter: u8 },
    Parquet,
}

/// The statement, if it is one; `None` for others, such as `COPY … TO`.
///
/// # Errors
/// If it has an option or a format that is not supported.
pub(super) fn copied_file(statement: &str) -> Result<Option<CopyFrom>, String> {
    let parser = Parser::new(&PostgreSqlDialect {}).try_with_sql(statement);
    let Ok(mut parser) = parser else { return Ok(None) }; // The engine says what is wrong with it.
    if !parser.parse_keyword(Keyword::COPY) {
        return Ok(None);
    }
    let Ok(Statement::Copy { source, to: false, target, options, legacy_options, .. }) =
        parser.parse_copy()
    else {
        return Ok(None);
    };
    let CopySource::Table { table_name, columns } = source else { return Ok(None) };
    let rest = parser.next_token().token;
    if rest != Token::EOF && rest != Token::SemiColon {
        return Err(format!("COPY … FROM ends after its options, but {rest} follows"));
    }
    let CopyTarget::File { filename: path } = target else {
        return Err(
            "COPY … FROM reads a file here: COPY t FROM 'FILE'. Clients of a server send rows \
                    with COPY … FROM STDIN"
                .to_owned(),
        );
    };
    if !legacy_options.is_empty() {
        return Err(
            "write the options of COPY in parentheses: COPY t FROM 'FILE' (FORMAT csv, HEADER)"
                .to_owned(),
        );
    }
    let format = format_of(&path, options)?;
    let table =
        object_name_to_table_reference(table_name, true).map_err(|error| error.to_string())?;
    let name = |column: Ident| match column.quote_style {
        Some(_) => column.value,
        None => column.value.to_lowercase(),
    };
    Ok(Some(CopyFrom { table, columns: columns.into_iter().map(name).collect(), path, format }))
}

fn format_of(path: &str, options: Vec<CopyOption>) -> Result<Format, String> {
    let (mut format, mut has_header, mut delimiter) = (None, None, None);
    for option in options {
        match option {
            CopyOption::Format(name) => format = Some(name.value.to_lowercase()),
            CopyOption::Header(is_there) => has_header = Some(is_there),
            CopyOption::Delimiter(character) if character.is_ascii() => {
                delimiter = Some(character as u8)
            }
            other => {
                return Err(format!(
                    "COPY … FROM has the options FORMAT, HEADER and DELIMITER (one byte), and not {other}"
                ));
            }
        }
    }
    let extension = path.rsplit_once('.').map(|(_, extension)| extension.to_lowercase());
    match format.or(extension).as_deref() {
        Some("csv") => Ok(Format::Csv {
            has_header: has_header.unwrap_or(false),
            delimiter: delimiter.unwrap_or(b','),
        }),
        Some("parquet") if has_header.is_some() || delimiter.is_some() => {
            Err("HEADER and DELIMITER are options of CSV files".to_owned())
        }
        Some("parquet") => Ok(Format::Parquet),
        _ => Err(format!(
            "COPY … FROM reads CSV and Parquet files: say (FORMAT csv) or (FORMAT parquet) of {path}"
        )),
    }
}

impl CopyFrom {
    /// Lets the session have the rows of the file as a table, until [`Self::finish`]. Returns the statement that inserts them.
    ///
    /// # Errors
    /// If there is no such file, table or column.
    pub(super) async fn start(&self, context: &SessionContext) -> EngineResult<String> {
        let path = self.absolute_path()?;
        let table = context.table(self.table.clone()).await?;
        let names = match self.columns.is_empty() {
            true => table.schema().fields().iter().map(|field| field.name().clone()).collect(),
            false => self.columns.clone(),
        };
        let (rows, selected) = match self.format {
            Format::Parquet => {
                let rows = context.read_parquet(&path, ParquetReadOptions::default()).await?;
                let stored: BTreeSet<_> =
                    rows.schema().fields().iter().map(|field| field.name().clone()).collect();
                // Files with other names have the columns in the order of the table.
                let is_by_name = stored == names.iter().cloned().collect();
                let selected = if is_by_name { list(&names) } else { "*".to_owned() };
                (rows, selected)
            }
            Format::Csv { has_header, delimiter } => {
                let all = table.schema().as_arrow();
                let fields = names.iter().map(|name| all.field_with_name(name).cloned());
                let schema = Schema::new(fields.collect::<Result<Vec<_>, _>>()?);
                let options = CsvReadOptions::new().has_header(has_header).delimiter(delimiter);
                let options = options.schema(&schema).file_extension("");
                (context.read_csv(&path, options).await?, "*".to_owned())
            }
        };
        context.register_table(ROWS, rows.into_view())?;
        let (table, columns) = (self.table.to_quoted_string(), list(&names));
        Ok(format!("INSERT INTO {table} ({columns}) SELECT {selected} FROM \"{ROWS}\""))
    }

    /// The file as a URL, in which no character is that of a pattern.
    fn absolute_path(&self) -> EngineResult<String> {
        let path = std::path::absolute(&self.path)?;
        let url = Url::from_file_path(&path).ok().filter(|_| path.is_file());
        match url {
            Some(url) => Ok(url.to_string()),
            None => plan_err!(
                "{} is no file: COPY … FROM reads one local file; INSERT INTO … SELECT * FROM 'LOCATION' reads Parquet files elsewhere",
                self.path
            ),
        }
    }

    /// Ends what [`Self::start`] began.
    pub(super) fn finish(context: &SessionContext) -> EngineResult<()> {
        context.deregister_table(ROWS).map(drop)
    }
}

/// Names of columns in SQL.
fn list(names: &[String]) -> String {
    let quoted = names.iter().map(|name| format!("\"{}\"", name.replace('"', "\"\"")));
    quoted.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_names_a_table_and_a_file() {
        let copy = copied_file("COPY s.t (a, \"B\") FROM 'x.CSV' (HEADER, DELIMITER ';')");
        let expected = CopyFrom {
            table: TableReference::partial("s", "t"),
            columns: vec!["a".to_owned(), "B".to_owned()],
            path: "x.CSV".to_owned(),
            format: Format::Csv { has_header: true, delimiter: b';' },
        };
        assert_eq!(copy, Ok(Some(expected)));
        let format = |sql| copied_file(sql).map(|copy| copy.map(|copy| copy.format));
        assert_eq!(format("copy t from 'x.parquet'"), Ok(Some(Format::Parquet)));
        assert_eq!(format("COPY t FROM 'x' WITH (FORMAT parquet)"), Ok(Some(Format::Parquet)));
        assert_eq!(format("SELECT 1"), Ok(None));
        assert_eq!(format("COPY t TO 'x.parquet'"), Ok(None));
        assert_eq!(format("COPY (SELECT 1) TO 'x.csv'"), Ok(None));
        assert!(format("COPY t FROM 'x.json'").is_err());
        assert!(format("COPY t FROM 'x.csv' (QUOTE 'a')").is_err());
        assert!(format("COPY t FROM 'x.parquet' (HEADER)").is_err());
        assert!(format("COPY t FROM STDIN").is_err());
        assert!(format("COPY t FROM 'x.csv' CSV HEADER").is_err());
        assert!(format("COPY t FROM 'x.csv' WHERE a = 1").is_err());
        assert!(format("COPY t FROM 'x.csv';").is_ok());
    }
}
