//! Rewrites expressions of PostgreSQL that DataFusion does not know, or interprets differently, as calls of functions.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    AccessExpr, ArrayElemTypeDef, BinaryOperator, CastKind, CharacterLength, DataType, Expr,
    Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, SelectItem, Subscript, Value,
    ValueWithSpan,
};

use crate::queries::{ErrorKind, QueryError};
use crate::sql::errors::from_datafusion;
use crate::sql::functions::like_patterns::similar_to_escape;
use crate::sql::syntax::{call, is_named, is_user, literal, text_of};

/// Other names for text: PostgreSQL's own names, and the domains of `information_schema`.
const TEXT_TYPES: [&str; 5] = ["bpchar", "character_data", "citext", "sql_identifier", "yes_or_no"];

/// Rewrites an expression whose parts are rewritten already. Stops with an error if a part of it would be ignored.
pub(super) fn rewrite_expression(expression: &mut Expr) -> ControlFlow<QueryError> {
    let rewritten = match expression {
        Expr::Value(ValueWithSpan { value: Value::UnicodeStringLiteral(text), .. }) => {
            literal(text)
        }
        Expr::Like { pattern, escape_char, .. } | Expr::ILike { pattern, escape_char, .. } => {
            if let Some(escape) = escape_char.take_if(|escape| !is_backslash(&escape.value)) {
                let escaped = call("like_escape", vec![*pattern.clone(), Expr::Value(escape)]);
                **pattern = escaped;
            }
            return ControlFlow::Continue(());
        }
        Expr::Identifier(name)
            if name.quote_style.is_none() && name.value.eq_ignore_ascii_case("current_role") =>
        {
            call("session_user", Vec::new())
        }
        // `substring(text FROM 'pattern')` returns the match of the first group of a regular
        // expression, or the whole match.
        Expr::Substring { expr, substring_from: Some(pattern), substring_for: None, .. }
            if text_of(pattern).is_some() =>
        {
            if !text_of(pattern).is_some_and(takes_part) {
                return refuse(
                    "substring FROM a pattern with groups that may be left out",
                    "use regexp_match",
                );
            }
            let groups = call("regexp_match", vec![*expr.clone(), *pattern.clone()]);
            let first =
                Subscript::Index { index: Expr::value(Value::Number("1".to_owned(), false)) };
            Expr::CompoundFieldAccess {
                root: Box::new(Expr::Nested(Box::new(groups))),
                access_chain: vec![AccessExpr::Subscript(first)],
            }
        }
        Expr::SimilarTo { negated, expr, pattern, escape_char } => {
            let escape = escape_char.take().map_or_else(|| literal("\\"), Expr::Value);
            let (Some(pattern), Some(escape)) = (text_of(pattern), text_of(&escape)) else {
                return refuse("SIMILAR TO with a pattern that is no literal", "use regexp_like");
            };
            let regex = match similar_to_escape(pattern, escape) {
                Ok(regex) => regex,
                Err(error) => return ControlFlow::Break(from_datafusion(error)),
            };
            let right = Box::new(literal(&regex));
            let op = match negated {
                true => BinaryOperator::PGRegexNotMatch,
                false => BinaryOperator::PGRegexMatch,
            };
            Expr::Nested(Box::new(Expr::BinaryOp { left: expr.clone(), op, right }))
        }
        Expr::Interval(interval) => {
            if let Some(text) = text_of(&interval.value).and_then(interval_in_words) {
                *interval.value = literal(&text);
            }
            return ControlFlow::Continue(());
        }
        Expr::Cast { kind: CastKind::Cast | CastKind::DoubleColon, expr, data_type, .. } => {
            match cast(expr, data_type) {
                ControlFlow::Continue(Some(cast)) => cast,
                ControlFlow::Continue(None) => return ControlFlow::Continue(()),
                ControlFlow::Break(error) => return ControlFlow::Break(error),
            }
        }
        Expr::Function(function) if is_named(&function.name, &["mod"]) => {
            let Some(&[left, right]) = arguments(function).as_deref() else {
                return ControlFlow::Continue(());
            };
            let nested = |part: &Expr| Box::new(Expr::Nested(Box::new(part.clone())));
            let (left, right) = (nested(left), nested(right));
            Expr::Nested(Box::new(Expr::BinaryOp { left, op: BinaryOperator::Modulo, right }))
        }
        Expr::Function(function) if is_named(&function.name, &["quote_nullable"]) => {
            let Some(&[value]) = arguments(function).as_deref() else {
                return ControlFlow::Continue(());
            };
            let quoted = call("quote_literal", vec![value.clone()]);
            call("coalesce", vec![quoted, literal("NULL")])
        }
        _ => return ControlFlow::Continue(()),
    };
    *expression = rewritten;
    ControlFlow::Continue(())
}

/// Whether every group of a regular expression takes part in every match. `regexp_match` leaves out groups that do not.
fn takes_part(pattern: &str) -> bool {
    let (mut plain, mut characters, mut is_class) = (String::new(), pattern.chars(), false);
    while let Some(character) = characters.next() {
        match character {
            '\\' => drop(characters.next()),
            '[' | ']' => is_class = character == '[',
            character if !is_class => plain.push(character),
            _ => {}
        }
    }
    let plain = plain.replace("(?:", "");
    !plain.contains('(') || !["|", "(?", ")?", ")*", "){"].iter().any(|it| plain.contains(it))
}

/// Rewrites a cast to a type that DataFusion does not have, or whose length it ignores.
fn cast(expression: &Expr, to: &DataType) -> ControlFlow<QueryError, Option<Expr>> {
    let is_parameter =
        matches!(expression, Expr::Value(ValueWithSpan { value: Value::Placeholder(_), .. }));
    let function = match to {
        DataType::Uuid => "uuid_in",
        DataType::JSON => "json_in",
        DataType::JSONB => {
            return refuse("the type jsonb", "use json, which keeps the text as it is");
        }
        DataType::Interval { .. } => {
            let text = text_of(expression).and_then(interval_in_words);
            return ControlFlow::Continue(text.map(|text| Expr::Cast {
                kind: CastKind::Cast,
                expr: Box::new(literal(&text)),
                data_type: to.clone(),
                array: false,
                format: None,
            }));
        }
        DataType::Bytea if !is_parameter => "byteain",
        DataType::Char(length) | DataType::Character(length) => {
            return ControlFlow::Continue(Some(shortened(expression, length.as_ref(), Some(1))));
        }
        DataType::Varchar(length @ Some(_))
        | DataType::CharVarying(length @ Some(_))
        | DataType::CharacterVarying(length @ Some(_)) => {
            return ControlFlow::Continue(Some(shortened(expression, length.as_ref(), None)));
        }
        DataType::Array(
            ArrayElemTypeDef::SquareBracket(of, _) | ArrayElemTypeDef::AngleBracket(of),
        ) if has_length(of) => {
            return refuse("a length of the texts in an array", "leave it out");
        }
        DataType::Custom(name, arguments) if arguments.is_empty() && is_named(name, &["char"]) => {
            return ControlFlow::Continue(Some(shortened(expression, None, Some(1))));
        }
        DataType::Custom(name, arguments) if arguments.is_empty() && is_named(name, &["name"]) => {
            return ControlFlow::Continue(Some(shortened(expression, None, Some(63))));
        }
        DataType::Custom(name, arguments)
            if arguments.is_empty() && is_named(name, &TEXT_TYPES) =>
        {
            return ControlFlow::Continue(Some(text_cast(expression)));
        }
        _ => return ControlFlow::Continue(None),
    };
    ControlFlow::Continue(Some(call(function, vec![expression.clone()])))
}

/// An interval with its time in words: `1 day 02:30:00` becomes `1 day 9000 seconds`. `None` if it has no such time.
fn interval_in_words(text: &str) -> Option<String> {
    let words = text.split_whitespace().map(|word| match word.contains(':') {
        true => seconds_of(word),
        false => Some(word.to_owned()),
    });
    text.contains(':')
        .then(|| words.collect::<Option<Vec<_>>>())
        .flatten()
        .map(|words| words.join(" "))
}

/// The seconds of a time such as `-02:30:00.5` or `02:30`.
fn seconds_of(time: &str) -> Option<String> {
    let (sign, time) = match time.strip_prefix('-') {
        Some(time) => ("-", time),
        None => ("", time.strip_prefix('+').unwrap_or(time)),
    };
    let (hours, rest) = time.split_once(':')?;
    let (minutes, seconds) = rest.split_once(':').unwrap_or((rest, "0"));
    let (seconds, fraction) = seconds.split_once('.').unwrap_or((seconds, "0"));
    let number = |text: &str| text.parse::<u32>().ok().map(u64::from);
    let whole = number(hours)? * 3600 + number(minutes)? * 60 + number(seconds)?;
    let is_fraction = fraction.bytes().all(|byte| byte.is_ascii_digit());
    is_fraction.then(|| format!("{sign}{whole}.{fraction} seconds"))
}

fn has_length(of: &DataType) -> bool {
    matches!(
        of,
        DataType::Char(Some(_))
            | DataType::Character(Some(_))
            | DataType::Varchar(Some(_))
            | DataType::CharVarying(Some(_))
            | DataType::CharacterVarying(Some(_))
    )
}

fn text_cast(expression: &Expr) -> Expr {
    Expr::Cast {
        kind: CastKind::Cast,
        expr: Box::new(expression.clone()),
        data_type: DataType::Text,
        array: false,
        format: None,
    }
}

/// The first characters of a text.
fn shortened(expression: &Expr, length: Option<&CharacterLength>, default: Option<u64>) -> Expr {
    let length = match length {
        Some(CharacterLength::IntegerLength { length, .. }) => Some(*length),
        Some(CharacterLength::Max) => None,
        None => default,
    };
    let text = text_cast(expression);
    match length {
        None => text,
        Some(length) => {
            let length = Expr::value(Value::Number(length.to_string(), false));
            call("left", vec![text, length])
        }
    }
}

/// Rewrites `SELECT user`, which is not a column where there is no table.
pub(super) fn name_user(projection: &mut [SelectItem]) {
    for item in projection {
        match item {
            SelectItem::UnnamedExpr(expression) if is_user(expression) => {
                let (expr, alias) = (call("session_user", Vec::new()), Ident::new("user"));
                *item = SelectItem::ExprWithAlias { expr, alias };
            }
            SelectItem::ExprWithAlias { expr, .. } if is_user(expr) => {
                *expr = call("session_user", Vec::new());
            }
            _ => {}
        }
    }
}

/// Stops with an error that says what to use instead.
pub(super) fn refuse<T>(what: &str, instead: &str) -> ControlFlow<QueryError, T> {
    let text = match instead {
        "" => format!("{what} is not supported"),
        instead => format!("{what} is not supported; {instead}"),
    };
    ControlFlow::Break(QueryError::new(ErrorKind::NotSupported, text))
}

fn is_backslash(value: &Value) -> bool {
    matches!(value, Value::SingleQuotedString(text) if text == "\\")
}

/// The arguments of a call, if none has a name.
fn arguments(function: &Function) -> Option<Vec<&Expr>> {
    let FunctionArguments::List(list) = &function.args else { return None };
    let arguments = list.args.iter().map(|argument| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => Some(value),
        _ => None,
    });
    arguments.collect()
}
