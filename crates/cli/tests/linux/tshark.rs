//! Wireshark's dissector as a judge of RPL's air: a mesh forms itself, and packets of every size go
//! up and down in it.

use std::{fs, path::Path, process::Command};

use motet_lab::{Arena, net::plan};

use crate::air::{Form, Mesh, ping};
use crate::judge::{Routers, Row, missing};
use crate::peer::NotPermitted;

pub(crate) fn checks(_: &mut Routers) -> Result<Vec<Row>, NotPermitted> {
    if let Some(row) = missing("tshark") {
        return Ok(vec![row]);
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut rows = Vec::new();
    for (name, form) in [
        ("RFC 6282 headers, option 0x23", Form::PLAIN),
        ("RFC 6282 headers, option 0x63", Form::OLD),
        ("RFC 8138 headers", Form::COMPRESSED),
    ] {
        let arena = Arena::new();
        let mut mesh = Mesh::chain(&arena, 4, form);
        for mote in 1..=4 {
            for len in [48, 100, 400, 1_280] {
                mesh.send(&ping(plan::HOST, plan::mesh_addr(mote), len, mote));
            }
        }
        let file = folder.path().join("air.pcap");
        fs::write(&file, &mesh.capture).expect("room for a capture");
        let frames = count(&file, "wpan");
        let packets = count(&file, "icmpv6.type == 128");
        // 0x00800000 is the severity of an error.
        let bad = count(&file, "_ws.malformed || _ws.expert.severity == 8388608");
        rows.push(Row {
            check: format!("tshark finds an error, {name}"),
            value: bad as f64,
            unit: "frames",
            // Of compressed headers it puts no packet together that is in a tunnel and in fragments.
            pass: bad == 0 && packets >= if form.is_compressed { 22 } else { 40 },
            note: format!("of {frames}, with {packets} echo requests put together"),
        });
    }
    Ok(rows)
}

/// Frames of the capture that the filter takes.
fn count(file: &Path, filter: &str) -> usize {
    let mut tshark = Command::new("tshark");
    tshark
        .arg("-r")
        .arg(file)
        .args(["-d", "wpan.panid==0x4d54,6lowpan"]);
    // The contexts that the mesh's root announces to nobody: compression of addresses.
    for (id, prefix) in [(0, plan::MESH_PREFIX), (1, plan::WIRED_PREFIX)] {
        tshark.args(["-o", &format!("6lowpan.context{id}:{prefix}/64")]);
    }
    let output = tshark.args(["-Y", filter]).output().expect("tshark starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    output.stdout.iter().filter(|byte| **byte == b'\n').count()
}
