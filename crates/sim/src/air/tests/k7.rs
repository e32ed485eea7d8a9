use super::*;

const HEAD: &str = "{}\ndatetime,src,dst,channel,mean_rssi,pdr,tx_count\n";

fn trace(rows: &str) -> Result<Trace, TraceError> {
    read(format!("{HEAD}{rows}").as_bytes(), 26)
}

#[test]
fn links_have_the_delivery_that_was_measured() {
    let rows = "2018-01-31 23:59:58,0,1,26,-70.0,1.0,100\n2018-01-31 23:59:58,1,0,26,-88.0,0.5,100\n2018-01-31 23:59:58,1,0,26,-88.0,0.7,100\n\
                2018-01-31 23:59:58,0,2,26,,0.0,100\n2018-01-31 23:59:58,0,2,11,-60.0,1.0,100\n";
    let links = trace(rows).unwrap();
    assert_eq!((links.nodes, links.links.len()), (3, 3));
    let gains = links.mean(-101.4, 100);
    assert_eq!((gains.get(0, 1), gains.get(0, 2)), (Some(-70.0), None));
    let sinr = gains.get(1, 0).unwrap() + 101.4;
    let survives = phy::survival(ratio(sinr), 800.0);
    assert!((survives - 0.6).abs() < 1e-6, "{survives}");
}

#[test]
fn a_link_changes_when_it_did() {
    let rows = "2018-02-28 23:00:00,0,2,26,-60.0,1.0,100\n\
                2018-03-01 00:00:10,0,1,26,-72.0,1.0,100\n\
                2018-02-28 23:30:00,0,1,26,-71.0,1.0,100\n\
                2018-03-01 00:00:20,0,1,26,,0.0,100\n";
    let trace = trace(rows).unwrap();
    let (gains, later) = trace.replay(3_600, -101.4, 100);
    assert_eq!(
        (gains.get(0, 1), gains.get(0, 2)),
        (Some(-71.0), Some(-60.0))
    );
    let later: Vec<(u64, f64)> = later
        .iter()
        .map(|change| (change.at.as_micros() / 1_000_000, change.db))
        .collect();
    assert_eq!(later, [(10, -72.0), (20, f64::NEG_INFINITY)]);
    let (gains, later) = trace.replay(0, -101.4, 100);
    assert_eq!((gains.get(0, 1), later.len()), (Some(-71.0), 3));
}

#[test]
fn broken_lines_are_named() {
    for broken in [
        "2018-01-31 23:59:58,0,1,26,-70.0",
        "2018-13-31 23:59:58,0,1,26,-70.0,1.0,100",
        "yesterday,0,1,26,-70.0,1.0,100",
        "2018-01-31 23:59:58,0,1,27,-70.0,1.0,100",
        "2018-01-31 23:59:58,0,1,26,-70.0,1.1,100",
        "2018-01-31 23:59:58,0,1,26,inf,1.0,100",
        "2018-01-31 23:59:58,0,x,26,-70.0,1.0,100",
        "2018-01-31 23:59:58,0,99999999,26,-70.0,1.0,100",
        "2018-01-31 23:59:58,0,-1,26,-70.0,1.0,100",
        "2018-01-31 23:59:58,0,1.5,26,-70.0,1.0,100",
        "2018-01-31 23:59:58,0,1,\"[11, 27]\",-70.0,1.0,100",
        "2018-01-31 23:59:58,0,1,26,-70.0,all,100",
        "gone",
    ] {
        let error = trace(&format!(
            "2018-01-31 23:59:58,0,1,26,-70.0,1.0,100\n{broken}\n"
        ))
        .unwrap_err();
        assert!(
            matches!(error, TraceError::Line { line: 4, .. }),
            "{broken}"
        );
    }
    let empty = trace("2018-01-31 23:59:58,0,1,11,-70.0,1.0,100\n").unwrap_err();
    assert!(matches!(empty, TraceError::Empty { channel: 26 }));
    let cut = read(&[0x1f, 0x8b, 8], 26).unwrap_err();
    assert!(matches!(cut, TraceError::Unreadable(_)));
}

/// What such files are seen to leave open.
#[test]
fn what_a_row_leaves_open_is_read_as_that() {
    const AT: &str = "2018-01-31 23:59:58";
    // (a row, the link that it gives on channel 26)
    let cases = [
        // On no channel, on several, as numbers with a point.
        (format!("{AT},0,1,,-70.0,1.0,100"), Some((0, 1))),
        (format!("{AT},0,1,None,-70.0,1.0,100"), Some((0, 1))),
        (format!("{AT},0,1,[26],-70.0,1.0,100"), Some((0, 1))),
        (format!("{AT},0,1,\"[11, 26]\",-70.0,1.0,100"), Some((0, 1))),
        (format!("{AT},0.0,1.0,26.0,-70.0,1.0,100"), Some((0, 1))),
        (format!("{AT},0,1,[11],-70.0,1.0,100"), None),
        // A mean over neighbours, a link to itself, nothing measured.
        (format!("{AT},0,,26,-70.0,1.0,100"), None),
        (format!("{AT},,,26,-70.0,0.7,100"), None),
        (format!("{AT},1,1,26,-70.0,0.7,100"), None),
        (format!("{AT},0,1,26,-70.0,,100"), None),
        // No power, no time, no count, one column more.
        (format!("{AT},0,1,26,NaN,1.0,100"), Some((0, 1))),
        (",0,1,26,-70.0,1.0,100".into(), Some((0, 1))),
        (format!("{AT},0,1,26,-70.0,1.0"), Some((0, 1))),
        (format!("{AT},0,1,26,-70.0,1.0,100,7"), Some((0, 1))),
        (
            "2018-01-31T23:59:58.25Z,0,1,26,-70.0,1.0,".into(),
            Some((0, 1)),
        ),
        (format!("\u{feff}{AT},0,1,26,-70.0,1.0,100\r"), Some((0, 1))),
        ("# a remark".into(), None),
    ];
    for (row, link) in cases {
        // One more link, so that there is always one.
        let trace = trace(&format!("{row}\n{AT},2,3,26,-70.0,1.0,100\n"));
        let trace = trace.unwrap_or_else(|error| panic!("{row}: {error}"));
        let links: Vec<_> = trace.links.keys().filter(|ends| **ends != (2, 3)).collect();
        assert_eq!(links, link.iter().collect::<Vec<_>>(), "{row}");
        let gains = trace.mean(-101.4, 100);
        let (from, to) = link.unwrap_or((2, 3));
        assert!(gains.get(from, to).is_some_and(|db| db > -101.0), "{row}");
    }
}

#[test]
fn what_was_measured_on_the_channel_goes_before_what_may_have_been() {
    let rows = "2018-01-31 23:59:58,0,1,,-50.0,1.0,9\n2018-01-31 23:59:59,0,1,26,-60.0,1.0,9\n\
                2018-01-31 23:59:59,0,1,,-50.0,1.0,9\n2018-01-31 23:59:59,1,0,,-70.0,1.0,9\n";
    let gains = trace(rows).unwrap().mean(-101.4, 100);
    assert_eq!(
        (gains.get(0, 1), gains.get(1, 0)),
        (Some(-60.0), Some(-70.0))
    );
}

#[test]
fn one_silent_hour_does_not_take_a_good_link_away() {
    let silent = "2018-01-31 23:59:58,0,1,26,,0.0,100\n".to_owned();
    let good = "2018-01-31 23:59:58,0,1,26,-70.0,1.0,100\n".repeat(999);
    let gains = trace(&(silent + &good)).unwrap().mean(-101.4, 100);
    assert_eq!(gains.get(0, 1), Some(-70.0));
}

#[test]
fn columns_are_known_by_their_names() {
    let rows = "{}\nsrc,dst,pdr,datetime\n\
                05-43-32-ff-03-d9-a5-68,05-43-32-ff-02-d5-25-53,0.5,2018-01-31 23:59:58\n";
    let trace = read(rows.as_bytes(), 26).unwrap();
    assert_eq!((trace.nodes, trace.links.len()), (2, 1));
    // In the order of their addresses.
    assert!(trace.links.contains_key(&(1, 0)));
    let unnamed = "2018-01-31 23:59:58,0,1,26,-70.0,1.0,100\n";
    assert_eq!(read(unnamed.as_bytes(), 26).unwrap().nodes, 2);
    let short = "{}\ndatetime,src,dst,channel\n2018-01-31 23:59:58,0,1,26\n";
    let error = read(short.as_bytes(), 26).unwrap_err();
    assert!(error.to_string().contains("no column pdr"), "{error}");
    let far = "2018-01-31 23:59:58,0,40000,26,-70.0,1.0,100\n";
    let error = read(far.as_bytes(), 26).unwrap_err();
    assert!(error.to_string().contains("40001 nodes"), "{error}");
}

/// A small file, and more of it than a trace may have.
#[test]
fn a_zipped_file_cannot_fill_the_memory() {
    use std::io::Write as _;
    let mut zip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    zip.write_all(HEAD.as_bytes()).unwrap();
    let block = vec![b'\n'; 1 << 20];
    for _ in 0..65 {
        zip.write_all(&block).unwrap();
    }
    let error = read(&zip.finish().unwrap(), 26).unwrap_err().to_string();
    assert!(error.contains("longer than 64 MiB"), "{error}");
}

#[test]
fn a_published_trace_is_read() {
    let shared = std::env::var("MOTET_SHARED")
        .unwrap_or_else(|_| concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared").into());
    let Ok(bytes) = std::fs::read(format!("{shared}/data/traces/grenoble_7.k7.gz")) else {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "no trace");
        println!("not run: no trace in {shared}");
        return;
    };
    let links = read(&bytes, 26).unwrap();
    assert_eq!(links.nodes, 50);
    let gains = links.mean(-101.4, 100);
    let heard: usize = (0..50).map(|node| gains.listeners(node).len()).sum();
    // As counted by another program: pairs with any frame received on this channel.
    assert_eq!(heard, 386);
}
