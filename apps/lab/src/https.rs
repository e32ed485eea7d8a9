//! embedded-tls on one mote; behind the other, three hops away, OpenSSL's server.
//!
//! The chain is of three certificates with keys on P-256: the client has the first, the server
//! sends the other two. What embedded-tls does not check is in `docs/guide/sockets.md`.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::SystemTime;

use embedded_io_async::Write;
use embedded_tls::pki::CertVerifier;
use embedded_tls::{
    Aes128GcmSha256, Certificate, CryptoProvider, CryptoRngCore, MaxFragmentLength, TlsClock,
    TlsConfig, TlsConnection, TlsContext, TlsError, TlsVerifier,
};
use motet_embassy::Stack;
use rand_core::OsRng;

use crate::bridge::{self, Folder, Program};
use crate::motes::{Run, Setting};
use crate::report::Check;

const APP: &str = "embedded-tls";
const PORT: u16 = 443;
const HOST: &str = "mote.example";

/// A download over three hops with the right root, and one that has to fail. None where there is no
/// server.
pub(crate) fn download(frame_loss: f64) -> Vec<Check> {
    let folder = Folder::new("tls");
    let folder = folder.path();
    if let Err(reason) = certify(folder) {
        eprintln!("{APP}: not run: {reason}");
        return Vec::new();
    }
    let page = page();
    let written = fs::write(folder.join("page.bin"), &page);
    written.expect("a temporary folder can be written to");
    let Some(server) = start_server(folder) else {
        return Vec::new();
    };
    let percent = frame_loss * 100.0;
    let fetched = fetch(frame_loss, &server, &folder.join("root.der"));
    let stranger = fetch(frame_loss, &server, &folder.join("stranger.der"));
    let refused = matches!(&stranger.body, Err(reason) if reason.contains("InvalidCertificate"));
    if !refused {
        eprintln!(
            "{APP}: under a stranger's root: {:?}",
            stranger.body.map(|body| body.len())
        );
    }
    let whole = whole(&fetched, &page);
    vec![
        Check::at_least(
            APP,
            &format!("whole bytes, three hops, {percent:.0} % loss"),
            whole as f64,
            page.len() as f64,
            "B",
        ),
        Check::at_least(
            APP,
            &format!("stranger's root refused, {percent:.0} % loss"),
            f64::from(u8::from(refused)),
            1.0,
            "",
        ),
        Check::at_most(
            APP,
            &format!("places lost, {percent:.0} % loss"),
            Ok((fetched.gone + stranger.gone) as f64),
            0.0,
            "places",
        ),
    ]
}

/// OpenSSL's server of this folder's files.
fn start_server(folder: &Path) -> Option<Program> {
    let path = |name: &str| folder.join(name).display().to_string();
    let (certificate, key, chain) = (path("server.pem"), path("server.key"), path("issuer.pem"));
    Program::start_in(folder, "openssl", |port| {
        let words = format!(
            "s_server -accept {port} -cert {certificate} -key {key} -cert_chain {chain} -tls1_3 -WWW \
             -quiet"
        );
        words.split_whitespace().map(str::to_owned).collect()
    })
}

/// How many bytes came: none where they are not those of the page.
fn whole(fetched: &Fetched, page: &[u8]) -> usize {
    match &fetched.body {
        Ok(body) if body == page => return body.len(),
        Ok(body) => eprintln!("{APP}: {} bytes differ", body.len()),
        Err(reason) => eprintln!("{APP}: {reason}"),
    }
    0
}

struct Fetched {
    body: Result<Vec<u8>, String>,
    /// Places of both motes that were not free again.
    gone: usize,
}

/// Downloads the page, by this root's certificate, in a run of its own.
fn fetch(frame_loss: f64, server: &Program, root: &Path) -> Fetched {
    let mut run = Run::new(Setting {
        hops: 3,
        frame_loss,
        seed: 5,
    });
    let (mote, address) = (run.server, server.address());
    run.executor.spawn(async move {
        if let Err(error) = bridge::serve(mote, PORT, address).await {
            eprintln!("{APP}: {error}");
        }
    });
    let root = fs::read(root).expect("just written");
    let (client, to) = (run.client, (run.address, PORT).into());
    let body = run.executor.block_on(3_600, async move {
        let body = get(client, to, &root).await;
        // What closes in the background has the time that it is given.
        embassy_time::Timer::after_secs(200).await;
        body
    });
    Fetched {
        body: body.unwrap_or_else(|| Err("not done in time".to_owned())),
        gone: run.places_lost(),
    }
}

async fn get(stack: Stack, to: std::net::SocketAddr, root: &[u8]) -> Result<Vec<u8>, String> {
    let said = |error: TlsError| format!("{error:?}");
    let socket = stack.connect(to).await.map_err(|error| error.to_string())?;
    // What a mote has: room for a record of 4 KiB, which the server is asked not to exceed.
    let (mut to_read, mut to_write) = (vec![0; 4_096 + 512], vec![0; 4_096 + 512]);
    let mut tls = TlsConnection::new(socket, &mut to_read, &mut to_write);
    let config = TlsConfig::new()
        .with_server_name(HOST)
        .with_max_fragment_length(MaxFragmentLength::Bits12);
    let provider = Provider {
        verifier: CertVerifier::new(Certificate::X509(root)),
    };
    let opened = tls.open(TlsContext::new(&config, provider)).await;
    opened.map_err(said)?;
    let request = b"GET /page.bin HTTP/1.0\r\n\r\n";
    tls.write_all(request).await.map_err(said)?;
    tls.flush().await.map_err(said)?;
    let (mut answer, mut bytes) = (Vec::new(), [0; 1_024]);
    loop {
        match tls.read(&mut bytes).await {
            Ok(0) | Err(TlsError::ConnectionClosed) => break,
            Ok(count) => answer.extend_from_slice(&bytes[..count]),
            Err(error) => return Err(said(error)),
        }
    }
    let head = answer.windows(4).position(|four| four == b"\r\n\r\n");
    let body = head.map(|at| answer.split_off(at + 4));
    body.ok_or_else(|| "no answer of HTTP".to_owned())
}

struct Provider<'a> {
    verifier: CertVerifier<'a, Aes128GcmSha256, Clock, 4_096>,
}

impl CryptoProvider for Provider<'_> {
    type CipherSuite = Aes128GcmSha256;
    /// None is made: the client has no certificate.
    type Signature = [u8; 0];

    fn rng(&mut self) -> impl CryptoRngCore {
        OsRng
    }

    fn verifier(&mut self) -> Result<&mut impl TlsVerifier<Aes128GcmSha256>, TlsError> {
        Ok(&mut self.verifier)
    }
}

/// The time of this machine, by which its certificates are made.
struct Clock;

impl TlsClock for Clock {
    fn now() -> Option<u64> {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        since.ok().map(|since| since.as_secs())
    }
}

/// 250 KB, of which no two kilobytes are alike.
fn page() -> Vec<u8> {
    let mut state = 1_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    (0..250_000).map(|_| next()).collect()
}

/// Writes a root, an issuer below it, a server's certificate below that, and a root that has
/// nothing to do with them.
fn certify(folder: &Path) -> Result<(), String> {
    let constraints = folder.join("ca.cnf");
    fs::write(&constraints, "basicConstraints=critical,CA:TRUE\n")
        .map_err(|error| error.to_string())?;
    let names = folder.join("server.cnf");
    fs::write(&names, format!("subjectAltName=DNS:{HOST}\n")).map_err(|error| error.to_string())?;
    let path = |name: &str| folder.join(name).display().to_string();
    for name in ["root", "stranger"] {
        let (key, out) = (path(&format!("{name}.key")), path(&format!("{name}.pem")));
        openssl(&format!(
            "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -sha256 -days 2 \
             -subj /CN={name}.example -keyout {key} -out {out}"
        ))?;
        let der = path(&format!("{name}.der"));
        openssl(&format!("x509 -in {out} -outform der -out {der}"))?;
    }
    for (name, by, extensions, subject) in [
        ("issuer", "root", &constraints, "issuer.example"),
        ("server", "issuer", &names, HOST),
    ] {
        sign(folder, name, by, extensions, subject)?;
    }
    Ok(())
}

fn sign(
    folder: &Path,
    name: &str,
    by: &str,
    extensions: &Path,
    subject: &str,
) -> Result<(), String> {
    let path = |name: String| folder.join(name).display().to_string();
    let (key, request) = (path(format!("{name}.key")), path(format!("{name}.csr")));
    openssl(&format!(
        "req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -sha256 -subj /CN={subject} \
         -keyout {key} -out {request}"
    ))?;
    let (ca, ca_key) = (path(format!("{by}.pem")), path(format!("{by}.key")));
    let (out, extensions) = (path(format!("{name}.pem")), extensions.display());
    openssl(&format!(
        "x509 -req -in {request} -CA {ca} -CAkey {ca_key} -CAcreateserial -days 2 -sha256 \
         -extfile {extensions} -out {out}"
    ))
}

fn openssl(words: &str) -> Result<(), String> {
    let mut command = Command::new("openssl");
    let command = command.args(words.split_whitespace()).stdin(Stdio::null());
    let output = command.output().map_err(|_| "no openssl".to_owned())?;
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
    }
}
