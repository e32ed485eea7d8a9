//! The network as a picture: nodes, links by use and quality, flows.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::plot::LINES_MAX;
use super::theme::{escape, series_css};
use crate::scenario::{FlowEnd, Move, Scenario};
use crate::scenario::{LinkResult, RunResult};

/// The network of `scenario` as it was in `run`, as inline SVG.
pub(super) fn svg(scenario: &Scenario, run: &RunResult) -> String {
    let parents = parents(scenario, run);
    let (places, metres) = match &scenario.positions {
        Some(positions) => (positions.clone(), true),
        None => (tree_layout(&parents), false),
    };
    let map = Map::new(&places, metres);
    let mut text = format!(
        "<svg viewBox=\"0 0 {WIDTH} {height:.0}\" xmlns=\"http://www.w3.org/2000/svg\" \
         font-family=\"system-ui,sans-serif\" text-anchor=\"middle\">",
        height = map.height
    );
    let places: Vec<[f64; 2]> = places.iter().map(|place| map.at(*place)).collect();
    let labels = draw_links(&mut text, &parents, run, &places);
    draw_nodes(&mut text, scenario, run, &places);
    // Above nodes that leave it no room.
    draw_host(&mut text, &places);
    text.push_str(&labels);
    if let Some(scale) = map.scale_bar() {
        text.push_str(&scale);
    }
    text.push_str("</svg>");
    text
}

/// The parent of each node at the end of the run; where the run has not reported any, as planned.
fn parents(scenario: &Scenario, run: &RunResult) -> Vec<Option<usize>> {
    let nodes = scenario.network.nodes.len();
    let own = |node: usize| run.nodes.get(node).and_then(|node| node.parent);
    let parents: Vec<Option<usize>> = (0..nodes).map(own).collect();
    let leads_up = |node: usize| depth(&parents, node).is_some();
    match (1..nodes).all(leads_up) {
        true => parents,
        false => (0..nodes).map(|node| scenario.tree.parent(node)).collect(),
    }
}

/// Hops to the root; none where parents do not lead there.
fn depth(parents: &[Option<usize>], node: usize) -> Option<usize> {
    let mut at = node;
    for hops in 0..parents.len() {
        if at == 0 {
            return Some(hops);
        }
        at = (*parents.get(at)?)?;
    }
    None
}

/// The mapping from the plane of the scenario to that of the picture.
struct Map {
    low: [f64; 2],
    factor: [f64; 2],
    /// Margin on the left.
    margin: f64,
    height: f64,
    metres: bool,
}

impl Map {
    fn new(places: &[[f64; 2]], metres: bool) -> Self {
        let bound = |axis: usize, pick: fn(f64, f64) -> f64, start: f64| {
            places.iter().map(|place| place[axis]).fold(start, pick)
        };
        let low = [0, 1].map(|axis| bound(axis, f64::min, f64::INFINITY));
        let high = [0, 1].map(|axis| bound(axis, f64::max, f64::NEG_INFINITY));
        let span = [0, 1].map(|axis| high[axis] - low[axis]);
        let inner = WIDTH - 2.0 * MARGIN_X;
        let across = inner / span[0].max(1e-9);
        let (factor, used) = if metres {
            // A metre is a metre both ways.
            let factor = across.min(HEIGHT_MAX / span[1].max(1e-9));
            ([factor, factor], span[1] * factor)
        } else {
            let down = ROW.min(HEIGHT_MAX / span[1].max(1e-9));
            ([across.min(STEP_MAX), down], span[1] * down)
        };
        Self {
            low,
            factor,
            margin: (WIDTH - span[0] * factor[0]) / 2.0,
            height: used + 2.0 * MARGIN_Y,
            metres,
        }
    }

    fn at(&self, place: [f64; 2]) -> [f64; 2] {
        let x = self.margin + (place[0] - self.low[0]) * self.factor[0];
        let y = MARGIN_Y + (place[1] - self.low[1]) * self.factor[1];
        // Up is up on a map of metres.
        [x, if self.metres { self.height - y } else { y }]
    }

    /// A round number of metres.
    fn scale_bar(&self) -> Option<String> {
        if !self.metres {
            return None;
        }
        let metres = [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0]
            .into_iter()
            .find(|metres| metres * self.factor[0] >= 60.0)?;
        let (from, y) = (16.0, self.height - 14.0);
        let to = from + metres * self.factor[0];
        Some(format!(
            "<path d=\"M{from} {y:.1}h{:.1}\" stroke=\"var(--quiet)\" stroke-width=\"2\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" font-size=\"12\" fill=\"var(--quiet)\">{metres} m</text>",
            to - from,
            f64::midpoint(from, to),
            y - 6.0,
        ))
    }
}

/// Columns by hops; parents amid their children.
fn tree_layout(parents: &[Option<usize>]) -> Vec<[f64; 2]> {
    let nodes = parents.len();
    let mut children = vec![Vec::new(); nodes];
    for (node, parent) in parents.iter().enumerate() {
        if let Some(parent) = parent {
            children[*parent].push(node);
        }
    }
    let mut order = vec![0];
    let mut next = 0;
    while let Some(node) = order.get(next) {
        order.extend(&children[*node]);
        next += 1;
    }
    // Leaves below each other, in the order of a walk; then parents, deepest first.
    let mut leaves = 0.0;
    let mut rows = vec![0.0; nodes];
    let mut stack = vec![0];
    while let Some(node) = stack.pop() {
        if children[node].is_empty() {
            rows[node] = leaves;
            leaves += 1.0;
        }
        stack.extend(children[node].iter().rev());
    }
    for node in order.into_iter().rev() {
        let below = &children[node];
        if !below.is_empty() {
            rows[node] = below.iter().map(|child| rows[*child]).sum::<f64>() / below.len() as f64;
        }
    }
    (0..nodes)
        .map(|node| [depth(parents, node).unwrap_or_default() as f64, rows[node]])
        .collect()
}

/// Draws them, and gives their labels, which belong on top of everything.
fn draw_links(
    text: &mut String,
    parents: &[Option<usize>],
    run: &RunResult,
    places: &[[f64; 2]],
) -> String {
    let mut labels = String::new();
    let mut pairs: BTreeMap<(usize, usize), Vec<LinkResult>> = BTreeMap::new();
    for link in &run.links {
        let pair = (link.from.min(link.to), link.from.max(link.to));
        pairs.entry(pair).or_default().push(*link);
    }
    let of_tree = |(a, b): (usize, usize)| parents[a] == Some(b) || parents[b] == Some(a);
    for (node, parent) in parents.iter().enumerate() {
        if let Some(parent) = *parent {
            let pair = (node.min(parent), node.max(parent));
            pairs.entry(pair).or_default();
        }
    }
    let frames = |links: &[LinkResult]| links.iter().map(|link| link.frames).sum::<u64>();
    let most = pairs
        .values()
        .map(|links| frames(links))
        .max()
        .unwrap_or(1)
        .max(1);
    let labelled = places.len() <= LABELLED_MAX;
    // Nodes, and labels that have a place.
    let mut taken: Vec<[f64; 2]> = places.to_vec();
    for ((a, b), links) in &pairs {
        let ([ax, ay], [bx, by]) = (places[*a], places[*b]);
        let used = frames(links);
        let width = 1.5 + 8.5 * (used as f64 / most as f64).sqrt();
        let arrived: f64 = links
            .iter()
            .map(|link| link.delivered() * link.frames as f64)
            .sum();
        let delivered = arrived / used.max(1) as f64;
        let colour = match delivered {
            _ if used == 0 => "quiet",
            good if good >= 0.9 => "good",
            fair if fair >= 0.7 => "fair",
            _ => "bad",
        };
        // A link that is not part of the tree is dashed.
        let (opacity, dashes) = match of_tree((*a, *b)) {
            true if used == 0 => (".45", ""),
            true => (".75", ""),
            false => (".35", " stroke-dasharray=\"2 6\""),
        };
        let tip: Vec<String> = links.iter().map(tip).collect();
        let tip = escape(&tip.join("\n"));
        let _ = write!(
            text,
            "<g><title>{tip}</title><path d=\"M{ax:.1} {ay:.1}L{bx:.1} {by:.1}\" \
             stroke=\"var(--{colour})\" stroke-width=\"{width:.1}\" stroke-linecap=\"round\" \
             opacity=\"{opacity}\"{dashes}/></g>"
        );
        if labelled && used > 0 && of_tree((*a, *b)) {
            let [x, y] = free_place([ax, ay], [bx, by], &taken);
            taken.push([x, y]);
            let _ = write!(
                labels,
                "<text x=\"{x:.1}\" y=\"{:.1}\" font-size=\"12\" fill=\"var(--ink)\" \
                 stroke=\"var(--paper)\" stroke-width=\"4\" paint-order=\"stroke\">{:.0} %</text>",
                y + 4.0,
                100.0 * delivered
            );
        }
    }
    labels
}

/// Where a label of a link stands: beside the link, as near to its middle as there is room between
/// what is `taken`.
fn free_place(from: [f64; 2], to: [f64; 2], taken: &[[f64; 2]]) -> [f64; 2] {
    let (dx, dy) = (to[0] - from[0], to[1] - from[1]);
    let length = dx.hypot(dy).max(1e-9);
    // Half the room of a label, and of a node, across and down.
    let clear = |[x, y]: [f64; 2]| {
        let apart = taken
            .iter()
            .map(|[ox, oy]| ((x - ox).abs() / LABEL[0]).max((y - oy).abs() / LABEL[1]));
        apart.fold(f64::INFINITY, f64::min)
    };
    let along = [0.5, 0.42, 0.58, 0.34, 0.66, 0.27, 0.73];
    // Above a flat link, to the right of a steep one; then on its other side.
    let side = if dx < 0.0 { -1.0 } else { 1.0 };
    let beside = [LABEL_AWAY * side, -LABEL_AWAY * side];
    let candidates = along.into_iter().flat_map(|share| {
        beside.map(|away| {
            [
                from[0] + share * dx + away * dy / length * STEEP,
                from[1] + share * dy - away * dx / length,
            ]
        })
    });
    let mut best = ([0.0; 2], -1.0);
    for candidate in candidates {
        let room = clear(candidate);
        if room >= 1.0 {
            return candidate;
        }
        if room > best.1 {
            best = (candidate, room);
        }
    }
    best.0
}

fn tip(link: &LinkResult) -> String {
    format!(
        "{} → {}: {} frames, {:.0} % arrived",
        link.from,
        link.to,
        link.frames,
        100.0 * link.delivered()
    )
}

/// The host and its wire, where there is most room around the border router.
fn draw_host(text: &mut String, places: &[[f64; 2]]) {
    let [x, y] = places[0];
    let angle = |[px, py]: [f64; 2]| (py - y).atan2(px - x);
    let away = |a: f64, b: f64| {
        let turn = (a - b).abs() % std::f64::consts::TAU;
        turn.min(std::f64::consts::TAU - turn)
    };
    let room = |candidate: f64| {
        let others = places
            .iter()
            .skip(1)
            .map(|place| away(angle(*place), candidate));
        others.fold(f64::INFINITY, f64::min)
    };
    // Left first: there it stands where a tree has nothing.
    let (_, best) = (0..16)
        .map(|step| std::f64::consts::PI * (1.0 + f64::from(step) / 8.0))
        .map(|candidate| (room(candidate), candidate))
        .fold((-1.0, 0.0), |best, next| {
            if next.0 > best.0 + 1e-9 { next } else { best }
        });
    let (hx, hy) = (x + HOST_AWAY * best.cos(), y + HOST_AWAY * best.sin());
    let anchor = match best.cos() {
        left if left < -0.4 => "end",
        right if right > 0.4 => "start",
        _ => "middle",
    };
    let _ = write!(
        text,
        "<path d=\"M{hx:.1} {hy:.1}L{x:.1} {y:.1}\" stroke=\"var(--quiet)\" stroke-width=\"2\" \
         stroke-dasharray=\"2 4\"/><text x=\"{:.1}\" y=\"{:.1}\" font-size=\"12\" \
         text-anchor=\"{anchor}\" fill=\"var(--quiet)\" stroke=\"var(--paper)\" stroke-width=\"4\" \
         paint-order=\"stroke\">host</text>",
        hx + 6.0 * best.cos(),
        hy + 4.0 + 8.0 * best.sin(),
    );
}

fn draw_nodes(text: &mut String, scenario: &Scenario, run: &RunResult, places: &[[f64; 2]]) {
    let radius = if places.len() <= LABELLED_MAX * 2 {
        14.0
    } else {
        6.0
    };
    for (node, [x, y]) in places.iter().enumerate() {
        let flows = scenario.flows.iter().enumerate();
        let mine = |end: FlowEnd| end == FlowEnd::Node(node);
        let flow = flows
            .filter(|(_, flow)| mine(flow.from) || mine(flow.to))
            .map(|(number, _)| number)
            .next();
        let (fill, ink) = match (node, flow) {
            (0, _) => ("var(--ink)".to_owned(), "var(--paper)"),
            // Where there are more flows than colours, their ends have one.
            (_, Some(flow)) => {
                let flow = if scenario.flows.len() > LINES_MAX {
                    0
                } else {
                    flow
                };
                (series_css(flow), "var(--paper)")
            }
            _ => ("var(--paper)".to_owned(), "var(--ink)"),
        };
        let tip = tip_of_node(run, node);
        let has_moved = run.moves.iter().any(|step| step.node == node);
        let ring = if has_moved {
            "stroke=\"var(--bad)\" stroke-width=\"3\""
        } else {
            "stroke=\"var(--ink)\" stroke-width=\"1.5\""
        };
        let shape = if node == 0 {
            format!(
                "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{side}\" height=\"{side}\" rx=\"5\"",
                x - radius,
                y - radius,
                side = 2.0 * radius
            )
        } else {
            format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\"")
        };
        let _ = write!(
            text,
            "<g><title>{}</title>{shape} fill=\"{fill}\" {ring}/>",
            escape(&tip)
        );
        if radius > 10.0 {
            let _ = write!(
                text,
                "<text x=\"{x:.1}\" y=\"{:.1}\" font-size=\"13\" font-weight=\"600\" \
                 fill=\"{ink}\">{node}</text>",
                y + 4.5
            );
        }
        text.push_str("</g>");
    }
}

fn tip_of_node(run: &RunResult, node: usize) -> String {
    let Some(result) = run.nodes.get(node) else {
        return String::new();
    };
    let counts = &result.counts;
    let mut tip = format!(
        "node {node}, {} hops\n{} frames sent, {} of them again",
        result.hops, counts.transmissions, counts.retries
    );
    if let Some(parent) = result.parent {
        let _ = write!(tip, "\nparent {parent}");
    }
    let own = run.moves.iter().filter(|step| step.node == node);
    for step in own.take(MOVES_TOLD) {
        let _ = write!(tip, "\n{:.1} s: {}", step.at_s, moved(step));
    }
    tip
}

/// The change of a node's parent, in words.
pub(super) fn moved(step: &Move) -> String {
    match (step.from, step.to) {
        (Some(from), Some(to)) => format!("from parent {from} to {to}"),
        (Some(from), None) => format!("without its parent {from}"),
        (None, Some(to)) => format!("back, with parent {to}"),
        (None, None) => "without a parent".to_owned(),
    }
}

const WIDTH: f64 = 680.0;
/// Lines about moves that show above a node.
const MOVES_TOLD: usize = 12;
const HEIGHT_MAX: f64 = 420.0;
const MARGIN_X: f64 = 90.0;
const MARGIN_Y: f64 = 42.0;
const HOST_AWAY: f64 = 46.0;
/// Between the middles of two labels, or of a label and a node: pixels across and down.
const LABEL: [f64; 2] = [36.0, 19.0];
/// How far a label's middle is from its link; more beside a steep one, for it is wider than high.
const LABEL_AWAY: f64 = 12.0;
const STEEP: f64 = 1.8;
/// The distance between two leaves of a tree, and between a parent and its children.
const ROW: f64 = 46.0;
const STEP_MAX: f64 = 170.0;
/// The most nodes with which links have room for a label.
const LABELLED_MAX: usize = 24;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_of_links_cover_neither_nodes_nor_one_another() {
        // A short link beside long ones, as on a floor.
        let places = [
            [0.0, 0.0],
            [70.0, -20.0],
            [-60.0, 50.0],
            [140.0, -60.0],
            [200.0, -20.0],
        ];
        let mut taken = places.to_vec();
        for (from, to) in [(0, 1), (0, 2), (1, 3), (1, 4)] {
            let [x, y] = free_place(places[from], places[to], &taken);
            for [ox, oy] in &taken {
                let overlaps = (x - ox).abs() < LABEL[0] && (y - oy).abs() < LABEL[1];
                assert!(!overlaps, "{from} to {to} at {x}, {y}: {ox}, {oy}");
            }
            taken.push([x, y]);
        }
    }
}
