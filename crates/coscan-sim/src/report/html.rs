//! Results as one self-contained page: pictures, tables and explanations.

use super::draw::figure::escape;
use super::draw::page::{figure, head, heading, page, parameters};
use super::draw::style::Hue;
use super::glossary;
use super::pictures::sections;
use super::results::Results;
use super::tables::{Row, Table, agreements, tables};

const FOOTER: &str = "Virtual time: coscan’s Active Buffer Manager on simulated disks and processors. The same file, policies \
                      and seeds give the same page on every computer. [CS04], [CS07]: Zukowski, Boncz and others, Cooperative \
                      Scans, 2004 and 2007. [CS11]: Świtakowski, 2011.";

/// The results of an experiment as a page.
#[must_use]
pub fn html(results: &Results<'_>) -> String {
    let spec = results.spec();
    let eyebrow = format!("coscan sim · {} {}", spec.name, spec.source);
    let mut body = head(eyebrow.trim_end(), &spec.title, &summary(results));
    let policies = results.policies().iter();
    let policies: Vec<(String, String)> = policies
        .filter_map(|policy| Some(((*policy).to_owned(), glossary::policy(policy)?.to_owned())))
        .collect();
    body.push_str(&parameters(&policies));
    body.push_str(&comparison(results));
    for section in sections(results) {
        body.push_str(&heading(&section.title, &section.caption));
        section.pictures.iter().for_each(|picture| body.push_str(&figure(&picture.figure)));
    }
    body.push_str(&heading(
        "The figures",
        "The best of each row is bold. Where the paper states a value it stands below ours.",
    ));
    tables(results).iter().for_each(|table| body.push_str(&table_element(results, table)));
    body.push_str(&notes("What the paper does not say, and what is assumed", &spec.assumed));
    body.push_str(&notes("Why results differ", &spec.remarks));
    body.push_str(&heading("The words", ""));
    let measures = glossary::MEASURES.map(|(name, text)| (name.to_owned(), text.to_owned()));
    body.push_str(&parameters(&measures));
    page(&spec.name, &body, FOOTER)
}

fn summary(results: &Results<'_>) -> String {
    let spec = results.spec();
    let cases = match spec.cases.len() {
        1 => String::new(),
        cases => {
            let sweeps: Vec<&str> = spec.sweeps.iter().map(|sweep| sweep.name.as_str()).collect();
            format!("{cases} cases ({}), ", sweeps.join(" × "))
        }
    };
    let seeds = match results.seeds().len() {
        1 => "one seed".to_owned(),
        seeds => format!("averages over {seeds} seeds"),
    };
    format!("{cases}{} policies, {seeds}.", results.policies().len())
}

/// The orders of policies that the paper states, and whether they hold here.
fn comparison(results: &Results<'_>) -> String {
    let items: String = agreements(results)
        .iter()
        .map(|agreement| {
            let class = if agreement.broken.is_empty() { "" } else { " class=\"wrong\"" };
            format!("<p{class}>{}</p>\n", escape(&agreement.sentence()))
        })
        .collect();
    if items.is_empty() { items } else { heading("The paper's order of policies", "") + &items }
}

fn notes(title: &str, notes: &[String]) -> String {
    if notes.is_empty() {
        return String::new();
    }
    let items: String = notes.iter().map(|note| format!("<li>{}</li>\n", escape(note))).collect();
    format!("{}<ul>\n{items}</ul>\n", heading(title, ""))
}

fn table_element(results: &Results<'_>, table: &Table) -> String {
    let policies = results.policies().iter().enumerate();
    let header: String = policies
        .map(|(index, policy)| {
            let class = Hue::of_engine(policy, index).class();
            format!("<th class=\"{class}\">{}</th>", escape(policy))
        })
        .collect();
    let rows: String = table.rows.iter().map(row_element).collect();
    format!(
        "<div class=\"wide\"><table>\n<thead><tr><th class=\"name\">{}</th>{header}</tr></thead>\n\
         <tbody>\n{rows}</tbody>\n</table></div>\n",
        escape(&table.title)
    )
}

fn row_element(row: &Row) -> String {
    let cells = row.cells.iter().zip(&row.best).map(|(cell, best)| {
        let class = if *best { " class=\"best\"" } else { "" };
        format!("<td{class}>{}</td>", escape(cell))
    });
    let cells: String = cells.collect();
    let class = if row.part { " class=\"part\"" } else { "" };
    format!("<tr{class}><td class=\"name\">{}</td>{cells}</tr>\n", escape(&row.name))
}
