//! Colours and type, for pages and for pictures that stand alone.

/// One colour per engine, told apart also by the colour-blind (after Okabe and Ito), light and
/// dark. The known engines always have the same one.
const ENGINES: [(&str, &str, &str); 5] = [
    ("datafusion", "#475569", "#cbd5e1"),
    ("normal", "#d98e04", "#f2b33d"),
    ("attach", "#009e73", "#2fc79a"),
    ("elevator", "#c2558f", "#e69ac4"),
    ("relevance", "#0072b2", "#4da8e8"),
];
/// Colours for engines of other names.
const OTHERS: [(&str, &str); 3] =
    [("#56b4e9", "#8fd0f5"), ("#d55e00", "#ff8a4c"), ("#8b6f3e", "#c9a86a")];

/// Which of the colours `hue-0`, `hue-1`, … the engine at `index` has.
pub(super) fn hue(engine: &str, index: usize) -> usize {
    let known = ENGINES.iter().position(|(name, _, _)| *name == engine);
    known.unwrap_or(ENGINES.len() + index % OTHERS.len())
}

/// The variables for light and dark, under the given selector.
fn variables(selector: &str) -> String {
    let engines = ENGINES.iter().map(|(_, light, dark)| (*light, *dark)).chain(OTHERS);
    let (mut light, mut dark) = (String::new(), String::new());
    for (index, (light_hue, dark_hue)) in engines.enumerate() {
        light.push_str(&format!("--hue-{index}:{light_hue};"));
        dark.push_str(&format!("--hue-{index}:{dark_hue};"));
    }
    format!(
        "{selector}{{--ground:#fff;--panel:#f6f7f9;--ink:#16202e;--muted:#5b6675;--line:#dfe3e8;{light}}}\n\
         @media (prefers-color-scheme:dark){{{selector}{{--ground:#11161d;--panel:#1a212b;\
         --ink:#e8ecf1;--muted:#9aa6b5;--line:#2c3642;{dark}}}}}\n"
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
svg.figure .grid{stroke:var(--line);stroke-width:1}
svg.figure .base{stroke:var(--muted);stroke-width:1}
svg.figure .halo{stroke:var(--ground);stroke-width:4.5}
svg.figure .least{stroke:var(--ink);stroke-width:1.5;stroke-dasharray:5 4}
svg.figure .ground{fill:var(--ground)}
svg.figure .panel{fill:var(--panel)}
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
thead th.unit{color:var(--muted);font-weight:400;font-size:13px}
td.best{font-weight:680}
table.dense{font-size:13px}
table.dense th,table.dense td{padding:5px 4px}
table.dense .first{padding-left:16px}
table.dense .name{padding-left:0}
figure{margin:0;overflow-x:auto}
svg.figure{display:block;width:100%;min-width:640px;height:auto}
footer{margin-top:64px;padding-top:16px;border-top:1px solid var(--line);color:var(--muted);font-size:14px}
";

/// The style of a page.
pub(super) fn page() -> String {
    let engines = (0..ENGINES.len() + OTHERS.len())
        .map(|index| format!(".hue-{index}{{color:var(--hue-{index})}}\n"));
    format!(
        ":root{{color-scheme:light dark}}\n{}{PICTURE}{PAGE}{}",
        variables(":root"),
        engines.collect::<String>()
    )
}

/// The style inside a picture that stands alone.
pub(super) fn picture() -> String {
    format!("{}{PICTURE}", variables("svg.figure"))
}
