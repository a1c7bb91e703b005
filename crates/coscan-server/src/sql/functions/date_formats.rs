//! Replaces patterns of dates as in PostgreSQL, `YYYY-MM-DD`, by those of strftime, which DataFusion uses. Patterns
//! without an equivalent are refused, since they would be copied into the result.

use datafusion::common::DFSchema;
use datafusion::common::ScalarValue;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::expr_rewriter::FunctionRewrite;

/// Functions whose second argument is a pattern.
const FUNCTIONS: [&str; 3] = ["to_char", "to_date", "to_timestamp"];

/// The maximum length of a pattern, since a few of its bytes may produce a long text for each row.
const PATTERN_BYTES_MAX: usize = 1024;

/// Words of PostgreSQL's patterns, longer ones first, with their equivalents in strftime. `None` if there is no
/// equivalent.
const WORDS: [(&str, Option<&str>); 47] = [
    ("FMMonth", Some("%B")),
    ("FMDay", Some("%A")),
    ("FMHH24", Some("%-H")),
    ("FMHH12", Some("%-I")),
    ("FMYYYY", Some("%-Y")),
    ("FMDDD", Some("%-j")),
    ("FMMM", Some("%-m")),
    ("FMDD", Some("%-d")),
    ("FMHH", Some("%-I")),
    ("FMMI", Some("%-M")),
    ("FMSS", Some("%-S")),
    ("FMMon", Some("%b")),
    ("FMDy", Some("%a")),
    ("HH24", Some("%H")),
    ("HH12", Some("%I")),
    ("IDDD", None),
    ("IYYY", Some("%G")),
    ("YYYY", Some("%Y")),
    ("TZH", None),
    ("TZM", None),
    ("DDD", Some("%j")),
    ("Mon", Some("%b")),
    ("MON", None),
    ("mon", None),
    ("A.M.", None),
    ("P.M.", None),
    ("YYY", None),
    ("Day", None),
    ("DAY", None),
    ("Month", None),
    ("SSSS", None),
    ("YY", Some("%y")),
    ("MM", Some("%m")),
    ("MI", Some("%M")),
    ("MS", Some("%3f")),
    ("US", Some("%6f")),
    ("DD", Some("%d")),
    ("Dy", Some("%a")),
    ("HH", Some("%I")),
    ("SS", Some("%S")),
    ("IW", Some("%V")),
    ("ID", Some("%u")),
    ("AM", Some("%p")),
    ("PM", Some("%p")),
    ("am", Some("%P")),
    ("pm", Some("%P")),
    ("Q", Some("%q")),
];

/// Translates patterns.
#[derive(Debug)]
pub(in crate::sql) struct Patterns;

impl FunctionRewrite for Patterns {
    fn name(&self) -> &str {
        "Patterns"
    }

    fn rewrite(
        &self,
        mut expression: Expr,
        _schema: &DFSchema,
        _config: &ConfigOptions,
    ) -> Result<Transformed<Expr>> {
        if let Expr::ScalarFunction(ScalarFunction { func, args }) = &mut expression
            && FUNCTIONS.contains(&func.name())
            && let [_, pattern] = &mut args[..]
        {
            let Expr::Literal(value, _) = pattern else {
                let text = "the pattern of to_char, to_date and to_timestamp is a literal here";
                return Err(DataFusionError::NotImplemented(text.to_owned()));
            };
            let Some(text) = value.try_as_str().flatten() else {
                return Ok(Transformed::no(expression));
            };
            if text.len() > PATTERN_BYTES_MAX {
                let text = format!("a pattern has at most {PATTERN_BYTES_MAX} bytes");
                return Err(DataFusionError::ResourcesExhausted(text));
            }
            let has_words = ["YY", "MM", "DD", "HH", "MI", "SS"].iter().any(|it| text.contains(it));
            if has_words || !text.contains('%') {
                *value = ScalarValue::from(translated(text)?);
                return Ok(Transformed::yes(expression));
            }
        }
        Ok(Transformed::no(expression))
    }
}

fn translated(pattern: &str) -> Result<String> {
    let (mut rest, mut strftime) = (pattern, String::new());
    while let Some(first) = rest.chars().next() {
        if let Some(quoted) = rest.strip_prefix('"') {
            let (text, after) = quoted.split_once('"').unwrap_or((quoted, ""));
            strftime.push_str(&text.replace('%', "%%"));
            rest = after;
            continue;
        }
        let word = WORDS.iter().find(|(word, _)| rest.starts_with(word));
        match word {
            Some((word, Some(equal))) => {
                strftime.push_str(equal);
                rest = &rest[word.len()..];
            }
            None if !first.is_alphabetic() => {
                strftime.push_str(if first == '%' { "%%" } else { &rest[..first.len_utf8()] });
                rest = &rest[first.len_utf8()..];
            }
            _ => {
                return Err(DataFusionError::NotImplemented(format!(
                    "`{rest}` in the pattern `{pattern}`: known are YYYY, YY, MM, Mon, FMMonth, DD, DDD, Dy, FMDay, HH24, \
                     HH12, MI, SS, MS, US, AM, Q, IYYY, IW, ID, and texts in double quotes; or write a pattern of \
                     strftime, as in '%Y-%m-%d'"
                )));
            }
        }
    }
    Ok(strftime)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn patterns_are_translated_or_refused() {
        for (pattern, expected) in [
            ("YYYY-MM-DD HH24:MI:SS", "%Y-%m-%d %H:%M:%S"),
            ("DD Mon YYYY, HH12:MI AM", "%d %b %Y, %I:%M %p"),
            ("YYYYMMDD\"T\"HH24MISS.MS", "%Y%m%dT%H%M%S.%3f"),
            ("\"Q\"Q FMDay", "Q%q %A"),
            ("YYYY \"%\" %", "%Y %% %%"),
            ("", ""),
        ] {
            assert_eq!(translated(pattern).unwrap(), expected);
        }
        for pattern in ["Month", "yyyy", "WW", "MON", "YYYY-MM-DDTHH24", "TZ", "999"] {
            let refused = translated(pattern);
            assert_eq!(refused.is_err(), pattern != "999", "{pattern}");
        }
    }
}
