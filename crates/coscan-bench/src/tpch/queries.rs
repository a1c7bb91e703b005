//! The 22 queries of TPC-H, as templates.
//!
//! The files in `queries/tpch` begin with comments: the name of the query, then the value of each parameter in the
//! validation run of TPC-H (section 2.4 of its specification). `{name}` in the text stands for the parameter. Q15 has
//! its view in a `WITH`. [`super::Parameters`] draws other values.

/// A query of TPC-H without its parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Template {
    /// The number of the query, from 1 to 22.
    pub number: u8,
    text: &'static str,
}

macro_rules! templates {
    ($($number:literal $file:literal)*) => {
        [$(Template {
            number: $number,
            text: include_str!(concat!("../../queries/tpch/", $file, ".sql")),
        }),*]
    };
}

/// All queries, Q1 first.
pub const TEMPLATES: [Template; 22] = templates! {
    1 "q01" 2 "q02" 3 "q03" 4 "q04" 5 "q05" 6 "q06" 7 "q07" 8 "q08" 9 "q09" 10 "q10" 11 "q11"
    12 "q12" 13 "q13" 14 "q14" 15 "q15" 16 "q16" 17 "q17" 18 "q18" 19 "q19" 20 "q20" 21 "q21" 22 "q22"
};

impl Template {
    /// The name and the value of each parameter in the validation run. Only the parameter of Q11 depends on the scale
    /// factor.
    pub fn validation_parameters(&self, scale_factor: f64) -> Vec<(&'static str, String)> {
        let comments = self.text.lines().map_while(|line| line.strip_prefix("-- "));
        let parameter = |line: &'static str| {
            let (name, value) = line.strip_prefix('{')?.split_once("}: ")?;
            let part = value.strip_suffix(" / scale factor").and_then(|part| part.parse().ok());
            let value =
                part.map_or(value.to_owned(), |part: f64| (part / scale_factor).to_string());
            Some((name, value))
        };
        comments.filter_map(parameter).collect()
    }

    /// The SQL with these values of the parameters.
    pub fn sql(&self, parameters: &[(&'static str, String)]) -> String {
        let lines: Vec<_> =
            self.text.trim_end().lines().skip_while(|line| line.starts_with("--")).collect();
        let fill = |sql: String, (name, value): &(&str, String)| {
            sql.replace(&format!("{{{name}}}"), value)
        };
        parameters.iter().fold(lines.join("\n"), fill)
    }

    /// The columns by which the query sorts its rows. Empty if it has only one row.
    pub fn order_columns(&self) -> Vec<&'static str> {
        let Some((_, order)) = self.text.rsplit_once("ORDER BY ") else { return Vec::new() };
        let keys = order.lines().next().unwrap_or_default().split(", ");
        keys.filter_map(|key| key.split(' ').next()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn validation_parameters_fill_every_template() {
        for (index, template) in TEMPLATES.iter().enumerate() {
            assert_eq!(usize::from(template.number), index + 1);
            let sql = template.sql(&template.validation_parameters(1.0));
            assert!(!sql.contains(['{', '}']), "{sql}");
            assert!(sql.starts_with("SELECT") || sql.starts_with("WITH"), "{sql}");
        }
        let q2 = TEMPLATES[1];
        assert_eq!(q2.validation_parameters(1.0)[1], ("type", "BRASS".to_owned()));
        assert!(q2.sql(&q2.validation_parameters(1.0)).contains("p_type LIKE '%BRASS'"));
        let fraction =
            |scale_factor| TEMPLATES[10].validation_parameters(scale_factor)[1].1.clone();
        assert_eq!((fraction(1.0), fraction(0.01)), ("0.0001".to_owned(), "0.01".to_owned()));
    }

    #[test]
    fn order_columns_are_those_of_the_last_order_by() {
        let orders = TEMPLATES.map(|template| template.order_columns());
        assert_eq!(orders[1], ["s_acctbal", "n_name", "s_name", "p_partkey"]);
        assert_eq!(orders[8], ["nation", "o_year"]);
        let without: Vec<_> = (1..).zip(&orders).filter(|(_, order)| order.is_empty()).collect();
        let without: Vec<_> = without.into_iter().map(|(number, _)| number).collect();
        assert_eq!(without, [6, 14, 17, 19]);
    }
}
