//! scratch
use motet::time::Duration;
use motet_lab::experiments::outsiders::floors::{DenseFloor, Shape, network_at};
use motet_lab::experiments::outsiders::joined::joined;
fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let limit: u64 = args[0].parse().unwrap();
    let mut jobs = Vec::new();
    for arg in &args[1..] {
        if let Some(path) = arg.strip_prefix('@') {
            // @file:seed
            let (path, seed) = path.rsplit_once(':').unwrap();
            let seed: u64 = seed.parse().unwrap();
            let text = std::fs::read_to_string(path).unwrap();
            let mut positions = Vec::new();
            if path.ends_with("yaml") {
                for line in text.lines().filter(|l| l.trim().starts_with("pos:")) {
                    let inner = line.split(['[', ']']).nth(1).unwrap();
                    let p: Vec<f64> = inner
                        .split(',')
                        .map(|x| x.trim().parse::<f64>().unwrap() / 10.0)
                        .collect();
                    positions.push([p[0], p[1]]);
                }
            } else {
                let line = text.lines().find(|l| l.starts_with("positions")).unwrap();
                let nums: Vec<f64> = line
                    .split(|c: char| !(c.is_ascii_digit() || c == '.'))
                    .filter(|x| !x.is_empty() && *x != ".")
                    .map(|x| x.parse().unwrap())
                    .collect();
                for p in nums.chunks(2) {
                    positions.push([p[0], p[1]]);
                }
            }
            jobs.push((arg.clone(), positions, seed));
        } else {
            // shape from to
            let parts: Vec<&str> = arg.split(':').collect();
            let shapes: Vec<Shape> = match parts[0] {
                "g" => vec![Shape::Grid],
                "s" => vec![Shape::SmallRoom],
                "l" => vec![Shape::LargeRoom],
                "o" => vec![Shape::Office],
                _ => Shape::ALL.to_vec(),
            };
            let from: u64 = parts[1].parse().unwrap();
            let to: u64 = parts[2].parse().unwrap();
            for seed in from..to {
                for shape in &shapes {
                    let floor = DenseFloor::draw(*shape, seed / 2);
                    jobs.push((
                        format!("{}:{} ({})", shape.name(), seed, floor.positions.len() - 1),
                        floor.positions,
                        seed,
                    ));
                }
            }
        }
    }
    let jobs = std::sync::Mutex::new(jobs.into_iter());
    let threads: usize = std::env::var("THREADS")
        .ok()
        .and_then(|x| x.parse().ok())
        .unwrap_or(1);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let job = jobs.lock().unwrap().next();
                    let Some((name, positions, seed)) = job else {
                        return;
                    };
                    let began = std::time::Instant::now();
                    let j =
                        joined(network_at(&positions, seed), Duration::from_secs(limit)).unwrap();
                    println!(
                        "{name}: {:.4} {:.1} s [{:.0} s wall] {}",
                        j.share,
                        j.slowest_s,
                        began.elapsed().as_secs_f64(),
                        j.missing
                    );
                }
            });
        }
    });
}
