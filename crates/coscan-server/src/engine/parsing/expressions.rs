//! Expressions of PostgreSQL that DataFusion does not know, or takes for others, as calls of functions.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    AccessExpr, BinaryOperator, CastKind, CharacterLength, DataType, Expr, Function, FunctionArg,
    FunctionArgExpr, FunctionArgumentList, FunctionArguments, Ident, ObjectName, SelectItem,
    Subscript, Value, ValueWithSpan,
};

use crate::engine::functions::matching::similar_to_escape;

/// Types of texts that SQL does not name.
const TEXTS: [&str; 7] =
    ["bpchar", "char", "character_data", "citext", "name", "sql_identifier", "yes_or_no"];

/// Rewrites an expression whose parts are rewritten already.
pub(super) fn rewrite_expression(expression: &mut Expr) -> ControlFlow<&'static str> {
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
        // `substring(text FROM 'pattern')`: what the first group of a regular expression matches, or all of it.
        Expr::Substring { expr, substring_from: Some(pattern), substring_for: None, .. }
            if text_of(pattern).is_some() =>
        {
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
            // What is matched must be a literal.
            let translated = match (text_of(pattern), text_of(&escape)) {
                (Some(pattern), Some(escape)) => similar_to_escape(pattern, escape).ok(),
                _ => None,
            };
            let right = match translated {
                Some(translated) => literal(&translated),
                None => call("similar_to_escape", vec![*pattern.clone(), escape]),
            };
            let right = Box::new(right);
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
                ControlFlow::Break(what) => return ControlFlow::Break(what),
            }
        }
        Expr::Function(function) if is_named(&function.name, "mod") => {
            let Some(&[left, right]) = arguments(function).as_deref() else {
                return ControlFlow::Continue(());
            };
            let nested = |part: &Expr| Box::new(Expr::Nested(Box::new(part.clone())));
            let (left, right) = (nested(left), nested(right));
            Expr::Nested(Box::new(Expr::BinaryOp { left, op: BinaryOperator::Modulo, right }))
        }
        Expr::Function(function) if is_named(&function.name, "quote_nullable") => {
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

/// A cast to a type that DataFusion does not have, or does not heed the length of.
fn cast(expression: &Expr, to: &DataType) -> ControlFlow<&'static str, Option<Expr>> {
    let is_parameter =
        matches!(expression, Expr::Value(ValueWithSpan { value: Value::Placeholder(_), .. }));
    let function = match to {
        DataType::Uuid => "uuid_in",
        DataType::JSON => "json_in",
        DataType::JSONB => {
            return ControlFlow::Break("the type jsonb; write json, which keeps the text: it");
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
        DataType::Custom(name, arguments) if arguments.is_empty() && is_text(name) => {
            return ControlFlow::Continue(Some(text_cast(expression)));
        }
        _ => return ControlFlow::Continue(None),
    };
    ControlFlow::Continue(Some(call(function, vec![expression.clone()])))
}

/// An interval with its time in words: `1 day 02:30:00` is `1 day 9000 seconds`. `None` if it has no such time.
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

/// The seconds of `-02:30:00.5`, `02:30`.
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

/// Whether a type is another name for texts.
fn is_text(name: &ObjectName) -> bool {
    let name = name.0.last().and_then(|part| part.as_ident());
    name.is_some_and(|name| TEXTS.contains(&name.value.to_ascii_lowercase().as_str()))
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

/// `SELECT user`: where there is no table, it is no column.
pub(super) fn name_user(projection: &mut [SelectItem]) {
    for item in projection {
        let (SelectItem::UnnamedExpr(expression)
        | SelectItem::ExprWithAlias { expr: expression, .. }) = item
        else {
            continue;
        };
        if let Expr::Function(function) = expression
            && matches!(function.args, FunctionArguments::None)
            && is_named(&function.name, "user")
        {
            *expression = call("session_user", Vec::new());
        }
    }
}

fn is_backslash(value: &Value) -> bool {
    matches!(value, Value::SingleQuotedString(text) if text == "\\")
}

fn text_of(expression: &Expr) -> Option<&str> {
    match expression {
        Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(text), .. }) => Some(text),
        _ => None,
    }
}

fn literal(text: &str) -> Expr {
    Expr::value(Value::SingleQuotedString(text.to_owned()))
}

fn is_named(name: &ObjectName, wanted: &str) -> bool {
    let name = name.0.last().and_then(|part| part.as_ident());
    name.is_some_and(|name| name.quote_style.is_none() && name.value.eq_ignore_ascii_case(wanted))
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

fn call(name: &str, arguments: Vec<Expr>) -> Expr {
    let arguments = arguments.into_iter().map(FunctionArgExpr::Expr).map(FunctionArg::Unnamed);
    Expr::Function(Function {
        name: ObjectName::from(vec![Ident::new(name)]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args: arguments.collect(),
            clauses: Vec::new(),
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}
