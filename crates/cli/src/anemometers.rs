//! The application of `motet up --app coap`, which each mote runs: a sensor that puts its readings
//! to this host's CoAP server, in blocks.
//!
//! Blocks have a length of RFC 7959, so that any server accepts them; batches are small, so that an
//! observer sees readings within a minute.

use motet_lab::Arena;
use motet_lab::apps::App;
use motet_lab::apps::backlog::{Backlog, Sensor};
use motet_lab::apps::coap::CoapReporter;
use motet_lab::coap;
use motet_lab::coap::timing::{Algorithm, Parameters, Timing};
use motet_lab::net::network::Network;
use motet_lab::net::plan;
use motet_lab::streams::{Purpose, stream};

/// Gives each mote such a sensor, in place of whatever it ran.
pub(crate) fn put_readings<'m>(network: &mut Network<'m>, arena: &'m Arena, seed: u64) {
    for mote in 1..network.mesh_nodes() {
        // Lossless: meshes are smaller.
        let mut rng = stream(seed, mote as u32, Purpose::Application);
        let backlog = Backlog::new(SENSOR, network.world.now(), &mut rng);
        let timing = Timing::new(Algorithm::Fixed, Parameters::RFC7252);
        let to = (plan::HOST, coap::PORT);
        let reporter = CoapReporter::new(to, backlog, BLOCK_LEN, Some(timing), rng, arena);
        network.world.set_app(mote, App::CoapReporter(reporter));
    }
}

/// TCPlp's anemometer, with a batch every four seconds.
const SENSOR: Sensor = Sensor {
    batch: 4,
    ..Sensor::ANEMOMETER
};

/// With its headers a block fills a frame (RFC 7959 §2.2: SZX 2).
const BLOCK_LEN: usize = 64;
