//! Statements that concern the session only, such as SET, SHOW and BEGIN. They are not passed to DataFusion.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::sql::sqlparser::ast::{
    ContextModifier, Expr, Ident, ObjectName, Reset, Set, SetSessionAuthorizationParam,
    SetSessionAuthorizationParamKind, Statement, TransactionAccessMode, TransactionMode, Value,
    ValueWithSpan,
};

use crate::queries::{ErrorKind, QueryError};
use crate::sql::command_tag::Command;
use crate::sql::{Session, normalized};

/// The most bytes of a name that count, as in PostgreSQL.
const NAME_BYTES_MAX: usize = 63;

/// A statement that concerns the session only.
#[derive(Clone, Debug)]
pub(super) enum SessionStatement {
    /// Settings with their values. `None` stands for the default.
    Set(Vec<(String, Option<String>)>),
    /// Settings with their values, which last until the end of the transaction.
    SetLocal(Vec<(String, Option<String>)>),
    Show(String),
    ShowAll,
    ResetAll,
    /// With READ ONLY or READ WRITE, if the statement says it.
    Begin(Option<bool>),
    /// READ ONLY or READ WRITE, for the transaction that is open or for all later ones.
    ReadOnly {
        is_read_only: bool,
        is_default: bool,
    },
    Commit,
    Rollback,
    Savepoint(String),
    RollbackTo(String),
    Release(String),
    /// No effect.
    Nothing,
}

/// The effect of a statement on the session, or `None` for queries.
///
/// # Errors
/// If a value cannot be read.
pub(super) fn session_statement(
    statement: &Statement,
) -> Result<Option<(Command, SessionStatement)>, QueryError> {
    let nothing = |command| Ok(Some((command, SessionStatement::Nothing)));
    match statement {
        Statement::Set(set) => Ok(Some((Command::Set, assignments(set)?))),
        Statement::Reset(reset) => Ok(Some((
            Command::Reset,
            match &reset.reset {
                Reset::ALL => SessionStatement::ResetAll,
                Reset::ConfigurationParameter(name) => {
                    SessionStatement::Set(vec![(dotted(name), None)])
                }
            },
        ))),
        Statement::ShowVariable { variable } => Ok(Some((Command::Show, show(variable)))),
        Statement::StartTransaction { modes, statements, .. } if statements.is_empty() => {
            Ok(Some((Command::Begin, SessionStatement::Begin(read_only(modes)))))
        }
        Statement::Commit { .. } => Ok(Some((Command::Commit, SessionStatement::Commit))),
        Statement::Rollback { savepoint: Some(name), .. } => {
            let to = SessionStatement::RollbackTo(savepoint_name(name));
            Ok(Some((Command::RollbackTo, to)))
        }
        Statement::Rollback { .. } => Ok(Some((Command::Rollback, SessionStatement::Rollback))),
        Statement::Savepoint { name } => {
            Ok(Some((Command::Savepoint, SessionStatement::Savepoint(savepoint_name(name)))))
        }
        Statement::ReleaseSavepoint { name } => {
            Ok(Some((Command::Release, SessionStatement::Release(savepoint_name(name)))))
        }
        Statement::Discard { .. } => Ok(Some((Command::Discard, SessionStatement::ResetAll))),
        Statement::Deallocate { .. } => nothing(Command::Deallocate),
        Statement::UNLISTEN { .. } => nothing(Command::Unlisten),
        _ => Ok(None),
    }
}

/// READ ONLY or READ WRITE among the modes of a transaction.
fn read_only(modes: &[TransactionMode]) -> Option<bool> {
    modes.iter().rev().find_map(|mode| match mode {
        TransactionMode::AccessMode(mode) => Some(*mode == TransactionAccessMode::ReadOnly),
        TransactionMode::IsolationLevel(_) => None,
    })
}

/// The name of a savepoint. Only its beginning counts, as in PostgreSQL.
fn savepoint_name(name: &Ident) -> String {
    let name = normalized(name);
    name[..name.floor_char_boundary(NAME_BYTES_MAX)].to_owned()
}

fn assignments(set: &Set) -> Result<SessionStatement, QueryError> {
    let is_local = matches!(
        set,
        Set::SingleAssignment { scope: Some(ContextModifier::Local), .. }
            | Set::SetTimeZone { local: true, .. }
    );
    let set = match set {
        Set::SingleAssignment { scope: Some(ContextModifier::Global), .. } => {
            return Err(unsupported("SET GLOBAL"));
        }
        Set::SingleAssignment { variable, values, .. } => vec![(dotted(variable), text(values)?)],
        Set::SetTimeZone { value, .. } => {
            let value = match value {
                // Offsets of such intervals count east of Greenwich, those in texts west of it.
                Expr::Interval(interval) => {
                    text(std::slice::from_ref(&interval.value))?.map(|east| format!("<{east}>"))
                }
                value => text(std::slice::from_ref(value))?,
            };
            vec![("timezone".to_owned(), value)]
        }
        Set::SetNames { charset_name, .. } => {
            vec![("client_encoding".to_owned(), Some(charset_name.value.clone()))]
        }
        Set::SetNamesDefault {} => vec![("client_encoding".to_owned(), None)],
        Set::SetTransaction { modes, session, .. } => {
            return Ok(match read_only(modes) {
                Some(is_read_only) => {
                    SessionStatement::ReadOnly { is_read_only, is_default: *session }
                }
                None => SessionStatement::Nothing,
            });
        }
        // A session cannot change its user.
        Set::SetRole { role_name: None, .. }
        | Set::SetSessionAuthorization(SetSessionAuthorizationParam {
            kind: SetSessionAuthorizationParamKind::Default,
            ..
        }) => return Ok(SessionStatement::Nothing),
        other => return Err(unsupported(&other.to_string())),
    };
    Ok(if is_local { SessionStatement::SetLocal(set) } else { SessionStatement::Set(set) })
}

fn unsupported(what: &str) -> QueryError {
    QueryError::new(ErrorKind::NotSupported, format!("{what} is not supported"))
}

fn show(variable: &[Ident]) -> SessionStatement {
    let words: Vec<_> = variable.iter().map(|word| word.value.as_str()).collect();
    let name = words.join(".");
    if name.eq_ignore_ascii_case("all") {
        SessionStatement::ShowAll
    } else {
        SessionStatement::Show(name)
    }
}

fn dotted(name: &ObjectName) -> String {
    let parts = name.0.iter().map(|part| match part.as_ident() {
        Some(ident) => ident.value.clone(),
        None => part.to_string(),
    });
    parts.collect::<Vec<_>>().join(".")
}

/// The value of an assignment as text. The elements of lists are separated by commas.
fn text(values: &[Expr]) -> Result<Option<String>, QueryError> {
    let values = values.iter().map(value).collect::<Result<Vec<_>, _>>()?;
    match &values[..] {
        [single] if single.eq_ignore_ascii_case("default") => Ok(None),
        values => Ok(Some(values.join(", "))),
    }
}

fn value(value: &Expr) -> Result<String, QueryError> {
    match value {
        Expr::Value(ValueWithSpan { value, .. }) => Ok(match value {
            Value::Number(number, _) => number.clone(),
            Value::SingleQuotedString(text) | Value::DoubleQuotedString(text) => text.clone(),
            Value::EscapedStringLiteral(text) => text.clone(),
            Value::Boolean(true) => "on".to_owned(),
            Value::Boolean(false) => "off".to_owned(),
            other => return Err(unsupported(&format!("the value {other}"))),
        }),
        Expr::Identifier(word) => Ok(word.value.clone()),
        Expr::UnaryOp { .. } | Expr::CompoundIdentifier(_) => Ok(value.to_string()),
        _ => Err(unsupported("an expression as the value of a setting")),
    }
}

impl SessionStatement {
    /// The columns of its result.
    pub(super) fn schema(&self) -> SchemaRef {
        let column = |name: &str| Field::new(name, DataType::Utf8, false);
        Arc::new(match self {
            Self::Show(name) => Schema::new(vec![column(&name.to_ascii_lowercase())]),
            Self::ShowAll => Schema::new(vec![column("name"), column("setting")]),
            _ => Schema::empty(),
        })
    }

    /// Executes the statement. The result has at most one batch.
    pub(super) async fn run(&self, session: &Session) -> Result<Vec<RecordBatch>, QueryError> {
        let user = &session.user;
        let strings = |values: Vec<String>| Arc::new(StringArray::from(values)) as ArrayRef;
        let settings = session.shared_settings();
        let set = |is_local, all: &[(String, Option<String>)]| {
            settings.change(is_local, |settings| {
                all.iter().try_for_each(|(name, to)| settings.set(name, to.as_deref(), user))
            })
        };
        let nothing = Vec::new();
        let columns = match self {
            Self::Nothing => return Ok(nothing),
            Self::Begin(is_read_only) => return session.begin(*is_read_only).map(|()| nothing),
            Self::ReadOnly { is_read_only, is_default } => {
                session.set_read_only(*is_read_only, *is_default);
                return Ok(nothing);
            }
            Self::Commit => return session.commit().await.map(|()| nothing),
            Self::Rollback => {
                session.roll_back();
                return Ok(nothing);
            }
            Self::Savepoint(name) => {
                let saved = session.transaction().save();
                return settings.save(name, saved).map(|()| nothing);
            }
            Self::RollbackTo(name) => {
                session.transaction().restore(&settings.roll_back_to(name)?);
                return Ok(nothing);
            }
            Self::Release(name) => return settings.release(name).map(|()| nothing),
            Self::ResetAll => {
                let reset = |settings: &mut crate::sql::Settings| {
                    *settings = Default::default();
                    Ok(())
                };
                return settings.change(false, reset).map(|()| nothing);
            }
            Self::Set(all) => return set(false, all).map(|()| nothing),
            Self::SetLocal(all) => return set(true, all).map(|()| nothing),
            Self::Show(name) => vec![strings(vec![session.settings().get(name, user)?])],
            Self::ShowAll => {
                let (names, values) = session.settings().all(user).into_iter().unzip();
                vec![strings(names), strings(values)]
            }
        };
        let batch = RecordBatch::try_new(self.schema(), columns);
        let batch =
            batch.map_err(|error| QueryError::new(ErrorKind::Internal, error.to_string()))?;
        Ok(vec![batch])
    }
}
