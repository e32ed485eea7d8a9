//! A page of its own: frame, look, and pictures side by side.

use std::fmt::Write as _;

use super::theme::{escape, variables};

/// A picture, with what stands above and below it.
pub(super) struct Figure {
    /// Name of the picture's file, without the ending.
    pub(super) name: String,
    pub(super) title: String,
    pub(super) note: String,
    pub(super) svg: String,
}

impl Figure {
    /// The picture with its title as its name, for readers that do not see it.
    pub(super) fn named_svg(&self) -> String {
        let title = escape(&self.title);
        let named = self.svg.replacen("<svg ", "<svg role=\"img\" ", 1);
        match named.split_once('>') {
            Some((begin, rest)) if begin.starts_with("<svg") => {
                format!("{begin}><title>{title}</title>{rest}")
            }
            _ => named,
        }
    }
}

/// A page without external resources; `title` is plain text.
pub(super) fn document(title: &str, body: &str) -> String {
    let title = escape(title);
    format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
         <title>{title}</title><style>{}{STYLE}</style></head><body><main>{body}</main></body></html>\n",
        variables()
    )
}

/// Pictures side by side, as many as there is room for.
pub(super) fn grid(figures: &[Figure]) -> String {
    let mut text = String::from("<div class=\"grid\">");
    for figure in figures {
        let _ = write!(
            text,
            "<figure><figcaption><h2>{}</h2><p>{}</p></figcaption>{}</figure>",
            escape(&figure.title),
            escape(&figure.note),
            figure.named_svg()
        );
    }
    text + "</div>"
}

const STYLE: &str = "\
body{margin:0;background:var(--page);color:var(--ink);font:15px/1.5 system-ui,sans-serif}\
main{max-width:1440px;margin:0 auto;padding:2rem 1.5rem 4rem}\
h1{margin:0;font-size:1.9rem;letter-spacing:-.02em}h2{margin:0;font-size:1.05rem}\
.quiet,figcaption p,.tiles p,small{color:var(--quiet)}header p{margin:.2rem 0 1.2rem}\
.warning{border-left:4px solid var(--bad);padding:.3rem .8rem;background:var(--paper)}\
.tiles{display:flex;flex-wrap:wrap;gap:.8rem;margin:0 0 1rem}\
.tiles div{background:var(--paper);border-radius:12px;padding:.7rem 1.2rem .6rem;flex:1 1 7rem}\
.tiles b{font-size:1.9rem;font-weight:650;letter-spacing:-.02em}.tiles p{margin:0}\
.grid{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,540px),1fr));gap:1rem;\
margin-bottom:1rem}\
figure,section{margin:0;background:var(--paper);border-radius:12px;padding:1rem 1.2rem}\
section{margin-bottom:1rem}figcaption p{margin:0 0 .6rem;font-size:.87rem;min-height:1.3em}\
svg{display:block;width:100%;max-width:46rem;height:auto;font-family:system-ui,sans-serif}\
.wide{overflow-x:auto}table{border-collapse:collapse;width:100%;margin-top:.6rem;\
font-variant-numeric:tabular-nums;font-size:.9rem}\
th,td{padding:.25rem .7rem;text-align:right;white-space:nowrap;border-bottom:1px solid var(--grid)}\
th{font-weight:600;vertical-align:bottom;white-space:normal}\
details{margin-bottom:1rem}summary{cursor:pointer;font-weight:600;padding:.5rem 0}\
td:first-child,th:first-child{text-align:left}\
.criteria td,.criteria th{text-align:left;white-space:normal}\
header h2{margin-top:2rem;font-size:1.25rem}.index{columns:3 20rem;margin:0 0 1rem;padding:0;list-style:none}.index b{color:var(--bad)}\
a{color:inherit}section details{margin:.6rem 0 0}\
.holds td:last-child{color:var(--good);font-weight:600}\
.missed td:last-child{color:var(--bad);font-weight:600}.fit{color:var(--quiet)}\
@media print{body{background:none}figure{break-inside:avoid}}";
