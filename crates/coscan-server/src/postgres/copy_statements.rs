//! The source, the target and the options of `COPY … TO STDOUT` and `COPY … FROM STDIN`.

use bytes::{BufMut, Bytes, BytesMut};
use datafusion::sql::sqlparser::ast::{
    CopyLegacyCsvOption, CopyLegacyOption, CopyOption, CopySource, CopyTarget, Ident, ObjectName,
    Statement,
};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::Parser;
use pgwire::api::portal::Format;

use crate::postgres::row_forms::CopyForm;
use crate::postgres::sqlstate::{INVALID_VALUE, NOT_SUPPORTED, PgError, SYNTAX};

/// The start of a binary result, which is a signature without flags or extensions.
const BINARY_HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";

/// The form of a copied result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CopyOut {
    pub(super) form: CopyForm,
    has_header: bool,
}

/// A table into which rows are copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CopyIn {
    pub(super) table: ObjectName,
    /// The columns that the rows have, in their order; none for all columns of the table.
    pub(super) columns: Vec<Ident>,
    pub(super) form: CopyForm,
    pub(super) has_header: bool,
}

/// What a COPY does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Copy {
    Out(CopyOut),
    In(Box<CopyIn>),
}

/// What a statement copies, and the query whose result it copies. For other statements, `None` and the statement.
///
/// # Errors
/// If it copies from or to files, or with unknown options.
pub(super) fn copy_statement(
    statement: Statement,
) -> Result<(Option<Copy>, Option<Statement>), PgError> {
    let Statement::Copy { source, to, target, options, legacy_options, .. } = statement else {
        return Ok((None, Some(statement)));
    };
    match (source, to, target) {
        (CopySource::Query(query), true, CopyTarget::Stdout) => {
            let out = with_options(&options, &legacy_options)?;
            Ok((Some(Copy::Out(out)), Some(Statement::Query(query))))
        }
        (CopySource::Table { table_name, columns }, true, CopyTarget::Stdout) => {
            let out = with_options(&options, &legacy_options)?;
            Ok((Some(Copy::Out(out)), Some(table(&table_name, &columns)?)))
        }
        (CopySource::Table { table_name: table, columns }, false, CopyTarget::Stdin) => {
            let CopyOut { form, has_header } = with_options(&options, &legacy_options)?;
            if form == CopyForm::Binary {
                let text = "COPY … FROM STDIN reads text and CSV, and no binary rows";
                return Err(PgError::new(NOT_SUPPORTED, text));
            }
            let copy = CopyIn { table, columns, form, has_header };
            Ok((Some(Copy::In(Box::new(copy))), None))
        }
        _ => {
            let text = "this server copies from and to its clients only: COPY (SELECT …) TO STDOUT, COPY t FROM STDIN";
            Err(PgError::new(NOT_SUPPORTED, text))
        }
    }
}

fn table(name: &ObjectName, columns: &[Ident]) -> Result<Statement, PgError> {
    let columns = match columns {
        [] => "*".to_owned(),
        columns => columns.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
    };
    let text = format!("SELECT {columns} FROM {name}");
    let parsed = Parser::parse_sql(&PostgreSqlDialect {}, &text);
    let mut parsed = parsed.map_err(|error| PgError::new(SYNTAX, error.to_string()))?;
    parsed.pop().ok_or_else(|| PgError::new(SYNTAX, "COPY names no table"))
}

fn with_options(options: &[CopyOption], legacy: &[CopyLegacyOption]) -> Result<CopyOut, PgError> {
    let (mut format, mut delimiter, mut null) = ("text".to_owned(), None, None);
    let (mut has_header, mut quote) = (false, '"');
    let unknown = |option: String| {
        PgError::new(NOT_SUPPORTED, format!("the option {option} of COPY is not supported"))
    };
    for option in options {
        match option {
            CopyOption::Format(name) => format = name.value.to_ascii_lowercase(),
            CopyOption::Delimiter(sign) => delimiter = Some(*sign),
            CopyOption::Null(text) => null = Some(text.clone()),
            CopyOption::Header(is) => has_header = *is,
            CopyOption::Quote(sign) => quote = *sign,
            CopyOption::Freeze(false) => {}
            CopyOption::Encoding(name) if is_utf8(name) => {}
            other => return Err(unknown(other.to_string())),
        }
    }
    for option in legacy {
        match option {
            CopyLegacyOption::Binary => "binary".clone_into(&mut format),
            CopyLegacyOption::Delimiter(sign) => delimiter = Some(*sign),
            CopyLegacyOption::Null(text) => null = Some(text.clone()),
            CopyLegacyOption::Header => has_header = true,
            CopyLegacyOption::Csv(options) => {
                "csv".clone_into(&mut format);
                for option in options {
                    match option {
                        CopyLegacyCsvOption::Header => has_header = true,
                        CopyLegacyCsvOption::Quote(sign) => quote = *sign,
                        other => return Err(unknown(other.to_string())),
                    }
                }
            }
            other => return Err(unknown(other.to_string())),
        }
    }
    let one_byte = |sign: char, what: &str| {
        let is_one = sign.is_ascii() && !"\r\n\\".contains(sign);
        let byte = u8::try_from(sign).ok().filter(|_| is_one);
        byte.ok_or_else(|| {
            PgError::new(INVALID_VALUE, format!("the {what} of COPY is one ASCII character"))
        })
    };
    let wrong = |text: &str| Err(PgError::new(INVALID_VALUE, text));
    if format == "binary" && (has_header || delimiter.is_some() || null.is_some()) {
        return wrong("binary results have no header, delimiter or text for NULL");
    }
    if format == "text"
        && delimiter
            .is_some_and(|sign| sign == '.' || sign.is_ascii_lowercase() || sign.is_ascii_digit())
    {
        return wrong("a delimiter of text is no lower-case letter, digit or point");
    }
    let separator = delimiter.unwrap_or(if format == "csv" { ',' } else { '\t' });
    let has_special = |text: &String| text.contains(['\r', '\n', separator]);
    if null
        .as_ref()
        .is_some_and(|text| has_special(text) || format == "csv" && text.contains(quote))
    {
        return wrong("the text for NULL has no line end, delimiter or quote");
    }
    if format == "csv" && separator == quote {
        return wrong("the delimiter and the quote of COPY differ");
    }
    let form = match format.as_str() {
        "binary" => CopyForm::Binary,
        "text" => CopyForm::Text {
            delimiter: one_byte(delimiter.unwrap_or('\t'), "delimiter")?,
            null: null.unwrap_or_else(|| "\\N".to_owned()),
        },
        "csv" => CopyForm::Csv {
            delimiter: one_byte(delimiter.unwrap_or(','), "delimiter")?,
            null: null.unwrap_or_default(),
            quote: one_byte(quote, "quote")?,
        },
        other => {
            let text = format!("COPY knows the formats text, csv and binary, and not {other}");
            return Err(PgError::new(INVALID_VALUE, text));
        }
    };
    Ok(CopyOut { form, has_header })
}

fn is_utf8(name: &str) -> bool {
    name.replace('-', "").eq_ignore_ascii_case("utf8")
}

impl Copy {
    /// About the bytes that it takes.
    pub(super) fn bytes(&self) -> usize {
        let (form, names) = match self {
            Self::Out(out) => (&out.form, 0),
            Self::In(copy) => (&copy.form, (copy.columns.len() + 3) * size_of::<Ident>()),
        };
        names
            + match form {
                CopyForm::Binary => 0,
                CopyForm::Text { null, .. } | CopyForm::Csv { null, .. } => null.len(),
            }
    }
}

impl CopyOut {
    /// The format of values.
    pub(super) fn format(&self) -> Format {
        match self.form {
            CopyForm::Binary => Format::UnifiedBinary,
            _ => Format::UnifiedText,
        }
    }

    /// The bytes before the rows of columns with these names.
    pub(super) fn header(&self, names: impl Iterator<Item = String>) -> Option<Bytes> {
        let Some(delimiter) = self.form.delimiter() else {
            return Some(Bytes::from_static(BINARY_HEADER));
        };
        if !self.has_header {
            return None;
        }
        let mut line = BytesMut::new();
        for (index, name) in names.enumerate() {
            if index > 0 {
                line.put_u8(delimiter);
            }
            self.form.add(&mut line, Some(name.as_bytes()));
        }
        line.put_u8(b'\n');
        Some(line.freeze())
    }
}
