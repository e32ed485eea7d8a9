//! All experiments as one self-contained page.

use motet_lab::experiments::row::{Role, Row};

use super::Done;

/// The page's file name.
pub(super) const NAME: &str = "report.html";

/// The page; `plots` are SVG texts by experiment.
pub(super) fn html(all: &[Done], plots: &[(&str, String)]) -> String {
    let mut body = String::new();
    for done in all {
        let id = done.experiment.id;
        body += &format!("<h2 id=\"{id}\">{}</h2>\n", escape(done.experiment.title));
        let budget = done.report.budget;
        body += &format!(
            "<p class=\"how\"><code>motet reproduce {id}</code>: {} runs of {} s each</p>\n",
            budget.runs, budget.seconds
        );
        body += "<div class=\"plots\">";
        for (_, svg) in plots.iter().filter(|(of, _)| *of == id) {
            body += &format!("<figure>{svg}</figure>\n");
        }
        body += "</div>\n<table><tr><th>setting<th>metric<th>value<th>paper<th>bound<th>criterion<th></tr>\n";
        for row in &done.report.rows {
            body += &cells(row);
        }
        body += "</table>\n";
    }
    format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Motet: the published \
         experiments</title><style>{STYLE}</style><h1>The published experiments, with Motet</h1>\n\
         <p>Virtual time, one calibration for all. A fit is a figure on which a constant of the \
         air was fitted; it proves nothing.</p>\n{body}</html>\n"
    )
}

fn cells(row: &Row) -> String {
    let number = |value: Option<f64>| value.filter(|v| v.is_finite()).map(|v| v.to_string());
    let number = |value| number(value).unwrap_or_default();
    let interval = row.ci95.map(|ci| format!(" <small>± {ci}</small>"));
    let (class, verdict) = match (row.role, row.pass()) {
        (Role::Fit, _) => ("fit", "fit"),
        (_, Some(true)) => ("holds", "holds"),
        (_, Some(false)) => ("missed", "missed"),
        _ => ("", ""),
    };
    let unit = if row.unit == "1" { "" } else { row.unit };
    format!(
        "<tr class=\"{class}\"><td>{}<td>{} <small>{unit}</small><td>{}{}<td>{}<td>{}<td>{}<td>{verdict}</tr>\n",
        escape(&row.point.to_string()),
        row.metric,
        number(Some(row.value)),
        interval.unwrap_or_default(),
        number(row.paper),
        number(row.bound),
        escape(row.criterion.as_ref().map_or("", |c| c.text.as_str())),
    )
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

const STYLE: &str = "body{font:15px/1.45 system-ui,sans-serif;max-width:1500px;margin:2em auto;\
    padding:0 1em;color:#222}h2{margin-top:2em;border-top:1px solid #ccc;padding-top:.8em}\
    .how{color:#666}.plots{display:flex;flex-wrap:wrap;gap:1em}figure{margin:0}\
    table{border-collapse:collapse;margin-top:1em}td,th{padding:.2em .8em;text-align:left;\
    border-bottom:1px solid #eee}small{color:#777}tr.holds td:last-child{color:#00734f;\
    font-weight:600}tr.missed td:last-child{color:#b30000;font-weight:600}tr.fit{color:#777}";
