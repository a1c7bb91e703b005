//! Colours and type, for pages and for pictures that stand alone, light and dark.

/// The colours in light and dark, which the colour-blind can distinguish, too (after Okabe and Ito).
const COLOURS: [(&str, &str); 8] = [
    ("#475569", "#cbd5e1"),
    ("#d98e04", "#f2b33d"),
    ("#009e73", "#2fc79a"),
    ("#c2558f", "#e69ac4"),
    ("#0072b2", "#4da8e8"),
    ("#56b4e9", "#8fd0f5"),
    ("#d55e00", "#ff8a4c"),
    ("#8b6f3e", "#c9a86a"),
];

/// Engines and policies that always have the same colour.
const KNOWN: [(&str, usize); 8] = [
    ("datafusion", 0),
    ("normal", 1),
    ("attach", 2),
    ("elevator", 3),
    ("relevance", 4),
    ("relevance-2007", 5),
    ("predictive", 6),
    ("relevance-2004", 7),
];

/// The order of the colours for other names, in which neighbours differ most.
const OTHERS: [usize; 8] = [4, 6, 2, 1, 3, 5, 7, 0];

/// One of the colours.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hue(usize);

impl Hue {
    /// The least conspicuous colour, for the background.
    pub const QUIET: Hue = Hue(0);

    /// The colour of an engine or a policy; if it has none of its own, the one at `index` of a list.
    #[must_use]
    pub fn of_engine(name: &str, index: usize) -> Hue {
        let known = KNOWN.iter().find(|(known, _)| *known == name);
        known.map_or(Hue(OTHERS[(index + 1) % OTHERS.len()]), |(_, hue)| Hue(*hue))
    }

    /// The colour of the query, or the kind of query, at `index` of a list.
    #[must_use]
    pub fn of_query(index: usize) -> Hue {
        Hue(OTHERS[index % OTHERS.len()])
    }

    /// Its variable in the style: `var(--hue-3)`.
    #[must_use]
    pub fn variable(self) -> String {
        format!("var(--hue-{})", self.0)
    }

    /// The class of texts of this colour on pages.
    #[must_use]
    pub fn class(self) -> String {
        format!("hue-{}", self.0)
    }

    /// Its position among the colours.
    pub(super) fn index(self) -> usize {
        self.0
    }
}

/// The variables for light and dark, under the given selector.
fn variables(selector: &str) -> String {
    let (mut light, mut dark) = (String::new(), String::new());
    for (index, (light_hue, dark_hue)) in COLOURS.iter().enumerate() {
        light.push_str(&format!("--hue-{index}:{light_hue};"));
        dark.push_str(&format!("--hue-{index}:{dark_hue};"));
    }
    format!(
        "{selector}{{--ground:#fff;--panel:#f6f7f9;--ink:#16202e;--muted:#5b6675;--line:#dfe3e8;\
         --kept:#dde3ea;{light}}}\n\
         @media (prefers-color-scheme:dark){{{selector}{{--ground:#11161d;--panel:#1a212b;\
         --ink:#e8ecf1;--muted:#9aa6b5;--line:#2c3642;--kept:#323e4d;{dark}}}}}\n"
    )
}

/// The look of everything inside pictures.
const PICTURE: &str = "\
svg.figure{font-family:system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif;\
font-size:13px;font-variant-numeric:tabular-nums}
svg.figure text{fill:var(--muted)}
svg.figure text.ink{fill:var(--ink)}
svg.figure text.strong{font-weight:600}
svg.figure text.small{font-size:9.5px}
svg.figure text.note{font-size:11px}
svg.figure text.haloed{paint-order:stroke;stroke:var(--ground);stroke-width:3.5px;stroke-linejoin:round}
svg.figure .grid{stroke:var(--line);stroke-width:1}
svg.figure .base{stroke:var(--muted);stroke-width:1}
svg.figure .halo{stroke:var(--ground);stroke-width:4.5}
svg.figure .least{stroke:var(--ink);stroke-width:1.5;stroke-dasharray:5 4}
svg.figure .ground{fill:var(--ground)}
svg.figure .panel{fill:var(--panel)}
svg.figure .dark{fill:var(--ink)}
svg.figure .kept{fill:var(--kept)}
svg.figure .paper{fill:none;stroke:var(--ink);stroke-width:2}
svg.figure .dots{fill:none;stroke-width:2;stroke-linecap:round}
svg.figure .curve{fill:none;stroke-width:2.5;stroke-linejoin:round;stroke-linecap:round}
";

/// The look of a page around pictures and tables.
const PAGE: &str = "\
*{box-sizing:border-box}
body{margin:0;background:var(--ground);color:var(--ink);line-height:1.55;\
font-family:system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif;\
font-size:16px;-webkit-font-smoothing:antialiased}
main{max-width:1120px;margin:0 auto;padding:56px 32px 72px}
.eyebrow{margin:0 0 6px;color:var(--muted);font-size:13px;letter-spacing:.08em;text-transform:uppercase}
h1{margin:0 0 12px;font-size:36px;line-height:1.15;letter-spacing:-.02em;font-weight:650}
h2{margin:56px 0 4px;font-size:21px;letter-spacing:-.01em;font-weight:620}
p{margin:0 0 12px;max-width:72ch}
p.caption{color:var(--muted);font-size:15px;margin-bottom:16px}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(200px,1fr));gap:14px;margin:28px 0}
.tile{background:var(--panel);border-radius:10px;padding:16px 18px}
.tile .name{color:var(--muted);font-size:14px}
.tile .value{font-size:30px;font-weight:650;letter-spacing:-.02em;line-height:1.3;font-variant-numeric:tabular-nums}
.tile .unit{font-size:16px;font-weight:500;letter-spacing:0;color:var(--muted)}
.tile .than{color:var(--muted);font-size:14px}
.tile b{color:var(--ink);font-weight:620;white-space:nowrap}
p.shown{margin:28px 0 -16px;font-weight:620}
dl{display:grid;grid-template-columns:repeat(auto-fit,minmax(200px,1fr));gap:12px 28px;margin:0;\
padding:18px 0;border-top:1px solid var(--line);border-bottom:1px solid var(--line)}
dt{color:var(--muted);font-size:13px}
dd{margin:0;font-size:15px;overflow-wrap:anywhere}
.wrong{border-left:4px solid #d55e00;background:var(--panel);padding:12px 16px;border-radius:0 8px 8px 0}
.wide{overflow-x:auto;margin:0 0 20px}
table{border-collapse:collapse;width:100%;font-size:14px;font-variant-numeric:tabular-nums}
th,td{padding:5px 9px;text-align:right;white-space:nowrap}
th{font-weight:600}
thead tr:last-child th{border-bottom:1px solid var(--muted)}
tbody tr{border-bottom:1px solid var(--line)}
th.name,td.name{text-align:left;padding-left:0;color:var(--muted);font-weight:400}
tbody tr:has(+tr.part){border-bottom:0}
tr.part td{padding-top:1px;padding-bottom:3px}
tr.part td.name{padding-left:18px}
tr.part td{color:var(--muted);font-size:13px}
thead th.unit{color:var(--muted);font-weight:400;font-size:13px}
td.best{font-weight:680}
table.dense{font-size:13px}
table.dense th,table.dense td{padding:5px 4px}
table.dense .first{padding-left:16px}
table.dense .name{padding-left:0}
figure{margin:0 0 20px;overflow-x:auto}
svg.figure{display:block;width:100%;min-width:640px;height:auto}
footer{margin-top:64px;padding-top:16px;border-top:1px solid var(--line);color:var(--muted);font-size:14px}
";

/// The style of a page.
pub(super) fn page() -> String {
    let hues =
        (0..COLOURS.len()).map(|index| format!(".hue-{index}{{color:var(--hue-{index})}}\n"));
    format!(
        ":root{{color-scheme:light dark}}\n{}{PICTURE}{PAGE}{}",
        variables(":root"),
        hues.collect::<String>()
    )
}

/// The style inside a picture that stands alone.
pub(super) fn picture() -> String {
    format!("{}{PICTURE}", variables("svg.figure"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_their_colour_wherever_they_stand() {
        assert_eq!(Hue::of_engine("relevance", 0), Hue::of_engine("relevance", 5));
        let hues: Vec<Hue> = KNOWN.iter().map(|(name, _)| Hue::of_engine(name, 0)).collect();
        assert!(hues.iter().enumerate().all(|(at, hue)| !hues[..at].contains(hue)), "{hues:?}");
    }
}
