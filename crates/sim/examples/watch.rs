//! scratch
use motet::time::{Duration, Instant};
use motet_lab::Arena;
use motet_lab::capture::{Capture, Records};
use motet_lab::experiments::outsiders::floors::{DenseFloor, Shape, network_at};
use motet_lab::net::lacks;
use motet_lab::net::network::Network;
fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let limit: u64 = args[0].parse().unwrap();
    let step: u64 = args[1].parse().unwrap();
    let (what, seed) = args[2].rsplit_once(':').unwrap();
    let seed: u64 = seed.parse().unwrap();
    let positions = if let Some(path) = what.strip_prefix('@') {
        let text = std::fs::read_to_string(path).unwrap();
        text.lines()
            .filter(|l| l.trim().starts_with("pos:"))
            .map(|line| {
                let inner = line.split(['[', ']']).nth(1).unwrap();
                let p: Vec<f64> = inner
                    .split(',')
                    .map(|x| x.trim().parse::<f64>().unwrap() / 10.0)
                    .collect();
                [p[0], p[1]]
            })
            .collect()
    } else {
        let shape = match what {
            "g" => Shape::Grid,
            "s" => Shape::SmallRoom,
            "l" => Shape::LargeRoom,
            _ => Shape::Office,
        };
        DenseFloor::draw(shape, seed / 2).positions
    };
    let arena = Arena::new();
    let mut net = Network::new(network_at(&positions, seed), &arena).unwrap();
    println!("height {}", net.tree().height(0));
    if let Some(path) = args.get(3) {
        net.world.set_capture(Some(
            Capture::create(std::path::Path::new(path), Records::Frames, true).unwrap(),
        ));
    }
    net.world.take_census();
    let n = net.mesh_nodes();
    let mut t = 0;
    let mut before = 0;
    while t < limit {
        t += step;
        net.world
            .run_until(Instant::ORIGIN + Duration::from_secs(t));
        let mut counts = std::collections::BTreeMap::new();
        let mut ok = 0;
        for m in 1..n {
            let l = lacks::lacks(&net.world, m);
            if l.is_empty() {
                ok += 1
            }
            for x in l {
                *counts.entry(x).or_insert(0) += 1;
            }
        }
        let frames: u64 = net.world.links().map(|(_, t)| t.frames).sum();
        let retries: u64 = net.macs().map(|m| u64::from(m.counters().retries)).sum();
        println!(
            "{t} s: {ok}/{} joined {counts:?} frames/s {} retries {retries}",
            n - 1,
            (frames - before) / step
        );
        before = frames;
    }
    println!(
        "{}",
        lacks::describe(
            &net.world,
            (1..n).filter(|m| !lacks::lacks(&net.world, *m).is_empty())
        )
    );
    println!("root mac {:?}", net.mac(0).unwrap().counters());
    println!("root ip {:?}", net.world.node(0).ip().counters);
    let mut all: std::collections::BTreeMap<String, u64> = Default::default();
    for m in 0..n {
        if let Some(rpl) = net.world.node(m).rpl() {
            use motet::rpl::MessageDrop as D;
            for r in [
                D::BadSource,
                D::Unwanted,
                D::OtherDodag,
                D::BadRank,
                D::SecondRoot,
                D::OldVersion,
                D::StrangeVersion,
                D::NoConfiguration,
                D::NoRoom,
                D::TooMany,
                D::BadTarget,
                D::OldSequence,
                D::GraphFull,
            ] {
                *all.entry(format!("{r:?}")).or_default() += u64::from(rpl.dropped(r));
            }
        }
    }
    println!("{all:?}");
    let _ = net.world.take_capture().map(Capture::finish);
}
