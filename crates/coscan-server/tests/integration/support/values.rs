//! Values of all types, in the forms in which PostgreSQL sends them.

use std::error::Error;

use tokio_postgres::types::{FromSql, Type};
use tokio_postgres::{Client, SimpleQueryMessage};

/// Values. Each line has five parts with tabs between them: the time zone, the value as an expression here and in
/// PostgreSQL, and the answer of PostgreSQL 15. `\\`, `\t` and `\n` are escapes.
const VALUES: &str = include_str!("values.tsv");

pub(crate) struct Value {
    pub(crate) zone: String,
    pub(crate) here: String,
    pub(crate) in_postgresql: String,
    pub(crate) answer: Answer,
}

/// The text, and the binary form in hexadecimal digits, or `NULL`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    text: String,
    binary: String,
}

impl Value {
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        VALUES.lines().map(|line| {
            let parts: Vec<_> = line.split('\t').map(unescaped).collect();
            let [zone, here, in_postgresql, text, binary] = <[String; 5]>::try_from(parts).unwrap();
            Self { zone, here, in_postgresql, answer: Answer { text, binary } }
        })
    }
}

fn unescaped(text: &str) -> String {
    let (mut plain, mut letters) = (String::new(), text.chars());
    while let Some(letter) = letters.next() {
        plain.push(match letter {
            '\\' => match letters.next().unwrap() {
                't' => '\t',
                'n' => '\n',
                other => other,
            },
            other => other,
        });
    }
    plain
}

/// The bytes of a value in binary form.
struct Raw(Option<Vec<u8>>);

impl<'a> FromSql<'a> for Raw {
    fn from_sql(_of: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(Some(raw.to_vec())))
    }

    fn from_sql_null(_of: &Type) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(None))
    }

    fn accepts(_of: &Type) -> bool {
        true
    }
}

/// The answer of a server.
pub(crate) async fn answer(client: &Client, zone: &str, value: &str) -> Result<Answer, String> {
    let failed = |error: tokio_postgres::Error| match error.as_db_error() {
        Some(error) => error.message().to_owned(),
        None => error.to_string(),
    };
    let zone = if zone.is_empty() { "UTC" } else { zone };
    client.batch_execute(&format!("SET timezone = '{zone}'")).await.map_err(failed)?;
    let sql = format!("SELECT {value}");
    let messages = client.simple_query(&sql).await.map_err(failed)?;
    let text = messages.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row.get(0).map(str::to_owned)),
        _ => None,
    });
    let Raw(binary) = client.query_one(&sql, &[]).await.map_err(failed)?.get(0);
    let null = || "NULL".to_owned();
    let digits = |bytes: Vec<u8>| bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(Answer {
        text: text.flatten().unwrap_or_else(null),
        binary: binary.map_or_else(null, digits),
    })
}
