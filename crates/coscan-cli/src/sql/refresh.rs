//! `REFRESH TABLE name` lists the files of a table again.

use datafusion::common::TableReference;
use datafusion::sql::planner::object_name_to_table_reference;
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::Token;

/// The table that a statement refreshes, or `None` for other statements.
///
/// # Errors
/// If it begins with `REFRESH TABLE`, but does not name one table.
pub(super) fn refreshed_table(statement: &str) -> Result<Option<TableReference>, String> {
    let parser = Parser::new(&GenericDialect {}).try_with_sql(statement);
    let Ok(mut parser) = parser else { return Ok(None) }; // The engine says what is wrong with it.
    let begins = parser.parse_keyword(Keyword::REFRESH) && parser.parse_keyword(Keyword::TABLE);
    if !begins {
        return Ok(None);
    }
    let name = parser.parse_object_name(false).map_err(|error| error.to_string())?;
    match parser.next_token().token {
        Token::EOF => {
            let table = object_name_to_table_reference(name, true);
            table.map(Some).map_err(|error| error.to_string())
        }
        other => Err(format!("REFRESH TABLE names one table, but {other} follows")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refresh_names_a_table() {
        let table = |sql| refreshed_table(sql).map(|table| table.map(|table| table.to_string()));
        assert_eq!(table("refresh table t"), Ok(Some("t".to_owned())));
        assert_eq!(table("REFRESH TABLE public.t -- now"), Ok(Some("public.t".to_owned())));
        assert_eq!(
            table("REFRESH TABLE 'Trips/a.parquet'"),
            Ok(Some("Trips/a.parquet".to_owned()))
        );
        assert_eq!(table("SELECT 1"), Ok(None));
        assert!(table("REFRESH TABLE").is_err());
        assert!(table("REFRESH TABLE a b").is_err());
    }
}
