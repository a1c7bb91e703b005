//! The log on standard error: lines of time, level, message and fields, as text or JSON.

use std::fmt::Write as _;
use std::io::{self, Write as _};

use chrono::{SecondsFormat, Utc};
use coscan_server::config::{Log, LogFormat};
use log::kv::{Error, Key, Value, VisitSource, VisitValue};
use log::{LevelFilter, Record};
use serde_json::Number;

/// Starts the log.
pub(super) fn start(settings: Log) {
    let others = settings.level.min(LevelFilter::Warn);
    let write = move |to: &mut env_logger::fmt::Formatter, record: &Record<'_>| -> io::Result<()> {
        let time = Utc::now().to_rfc3339_opts(SecondsFormat::Millis, true);
        writeln!(to, "{}", line(&time, record, settings.format))
    };
    let mut builder = env_logger::Builder::new();
    builder.filter_level(others).filter_module("coscan", settings.level).format(write);
    if builder.try_init().is_err() {
        eprintln!("coscan: something else logs already");
    }
}

fn line(time: &str, record: &Record<'_>, format: LogFormat) -> String {
    let mut fields = Fields(Vec::new());
    if record.key_values().visit(&mut fields).is_err() {
        fields.0.push(("incomplete".to_owned(), true.into()));
    }
    let (level, message) = (record.level(), record.args().to_string());
    match format {
        LogFormat::Text => {
            let mut line = format!("{time} {level:<5} {}", one_line(&message));
            for (name, value) in fields.0 {
                // Strings are quoted as in JSON, so they cannot look like line ends or other fields.
                write!(line, " {name}={value}").ok();
            }
            line
        }
        LogFormat::Json => {
            let about = [
                ("time", time.into()),
                ("level", level.as_str().into()),
                ("target", record.target().into()),
                ("message", message.into()),
            ];
            let about = about.into_iter().map(|(name, value)| (name.to_owned(), value));
            serde_json::Value::Object(about.chain(fields.0).collect()).to_string()
        }
    }
}

/// Escapes control characters, since messages may quote clients.
fn one_line(text: &str) -> String {
    text.chars()
        .flat_map(|c| if c.is_control() { c.escape_default().collect() } else { vec![c] })
        .collect()
}

struct Fields(Vec<(String, serde_json::Value)>);

impl<'kvs> VisitSource<'kvs> for Fields {
    fn visit_pair(&mut self, key: Key<'kvs>, value: Value<'kvs>) -> Result<(), Error> {
        let mut field = Field(serde_json::Value::Null);
        value.visit(&mut field)?;
        self.0.push((key.to_string(), field.0));
        Ok(())
    }
}

struct Field(serde_json::Value);

impl<'v> VisitValue<'v> for Field {
    fn visit_any(&mut self, value: Value<'_>) -> Result<(), Error> {
        self.0 = value.to_string().into();
        Ok(())
    }

    fn visit_u64(&mut self, value: u64) -> Result<(), Error> {
        self.0 = value.into();
        Ok(())
    }

    fn visit_i64(&mut self, value: i64) -> Result<(), Error> {
        self.0 = value.into();
        Ok(())
    }

    fn visit_f64(&mut self, value: f64) -> Result<(), Error> {
        // Rounds to microseconds.
        self.0 = Number::from_f64((value * 1e6).round() / 1e6).map_or(().into(), Into::into);
        Ok(())
    }

    fn visit_bool(&mut self, value: bool) -> Result<(), Error> {
        self.0 = value.into();
        Ok(())
    }

    fn visit_str(&mut self, value: &str) -> Result<(), Error> {
        self.0 = value.into();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use log::{Level, Record};

    use super::*;

    fn written(format: LogFormat, message: &str) -> String {
        let fields: &[(&str, Value<'_>)] =
            &[("query_id", 7_u64.into()), ("user", "a\"b\nc".into()), ("seconds", 0.25.into())];
        let mut record = Record::builder();
        record.level(Level::Info).target("coscan_server").key_values(&fields);
        line("2026-01-02T03:04:05.678Z", &record.args(format_args!("{message}")).build(), format)
    }

    #[test]
    fn a_line_for_people_has_all_fields_and_no_second_line() {
        assert_eq!(
            written(LogFormat::Text, "query\nended"),
            r#"2026-01-02T03:04:05.678Z INFO  query\nended query_id=7 user="a\"b\nc" seconds=0.25"#
        );
    }

    #[test]
    fn a_line_of_json_has_fields_of_their_types() {
        let line = written(LogFormat::Json, "query\nended");
        let read: serde_json::Value = serde_json::from_str(&line).expect("JSON");
        assert!(!line.contains('\n'));
        assert_eq!(read["message"], "query\nended");
        assert_eq!((&read["level"], &read["query_id"]), (&"INFO".into(), &7.into()));
        assert_eq!((&read["user"], &read["seconds"]), (&"a\"b\nc".into(), &0.25.into()));
    }
}
