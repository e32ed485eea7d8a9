//! What networks of every kind draw alike: hosts, the key of the mesh, attackers.
//!
//! Place: below the networks of `mesh`, of `everything` and of `outsiders`.

use std::array;

use motet::mac::security::{KEY_LEN, NetworkKey};
use motet::time::Duration;
use motet::wire::ieee802154::Level;

use super::dice::Dice;
use crate::keys::{JoinSecret, SECRET_LEN};
use crate::net::attack::{AttackOptions, Forgery, Frames};
use crate::net::network::{Cipher, HostOptions, NetworkOptions, SecurityOptions};

/// One or two hosts beyond the border router.
pub(super) fn hosts(dice: &mut Dice) -> Vec<HostOptions> {
    let hosts = (0..dice.range(1, 2)).map(|number| HostOptions {
        delay: dice.scale_ms(1, 500),
        ..HostOptions::new(format!("host {number}"))
    });
    hosts.collect()
}

/// An attacker beside one of `nodes` nodes, which forges frames of one of these kinds, or, with a
/// chance, plays back what it hears.
pub(super) fn attacker(
    dice: &mut Dice,
    nodes: usize,
    kinds: &[(&str, Forgery)],
    plays_back: f64,
) -> AttackOptions {
    let (_, forgery) = dice.pick(kinds);
    AttackOptions {
        near: dice.range(0, nodes as u32 - 1) as usize,
        per_s: f64::from(dice.scale(1, 20)),
        frames: match dice.chance(plays_back) {
            true => Frames::Replayed,
            false => Frames::Forged(forgery),
        },
        is_elsewhere: false,
    }
}

/// Gives the mesh a key.
pub(super) fn give_key(options: &mut NetworkOptions, dice: &mut Dice) {
    let key: [u8; KEY_LEN] = array::from_fn(|_| dice.bits() as u8);
    // Their indices go through 128.
    let sequence = dice.pick(&[0, 126]);
    let mut security = SecurityOptions::new(NetworkKey::new(key), sequence);
    security.level = dice.pick(&[Level::Mic32, Level::Mic32, Level::Mic64, Level::Mic128]);
    // A processor that takes a tenth of a second for a frame is late for whatever it is to do
    // meanwhile.
    let cipher = dice.pick(&[Cipher::Radio, Cipher::Software]);
    let is_quick = options.nodes[0].profile.cipher < Duration::from_millis(1);
    security.cipher = if is_quick { cipher } else { Cipher::Radio };
    // A mote that asks every four minutes still has the former key then.
    security.rotates_after = dice
        .chance(0.5)
        .then(|| ROTATES_AFTER_MIN + dice.span(ROTATES_AFTER_MIN));
    if dice.chance(0.3) {
        let secret: [u8; SECRET_LEN] = array::from_fn(|_| dice.bits() as u8);
        security = security.joined_by(JoinSecret::new(secret));
    }
    options.security = Some(security);
}

/// The least time from one link key to the next; the greatest is twice that.
const ROTATES_AFTER_MIN: Duration = Duration::from_secs(300);
