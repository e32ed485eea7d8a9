//! The entrance of RPL's messages: by their code, to the part that acts on each.

use core::net::Ipv6Addr;

use super::iid::Iid;
use super::{MessageDrop, MessageOutcome, Rpl, is_link_local};
use crate::random::Rng;
use crate::time::Instant;
use crate::wire::cursor::Reader;
use crate::wire::rpl::{Dao, DaoAck, Dio, Dis, ParseError, code};

impl Rpl<'_> {
    /// Acts on the message with ICMPv6 code `code`, of which `body` is what follows the checksum.
    /// `to_all`: it was sent to a multicast address.
    ///
    /// # Errors
    /// Why it changed nothing; counted.
    pub fn on_message<'a>(
        &mut self,
        from: Ipv6Addr,
        to_all: bool,
        (code, body): (u8, &'a [u8]),
        now: Instant,
        rng: &mut Rng,
    ) -> Result<MessageOutcome<'a>, MessageDrop> {
        let heard = self.act_on((&from, to_all), (code, Reader::new(body)), now, rng);
        heard.inspect_err(|reason| self.count(*reason))
    }

    fn act_on<'a>(
        &mut self,
        (from, to_all): (&Ipv6Addr, bool),
        (code, body): (u8, Reader<'a>),
        now: Instant,
        rng: &mut Rng,
    ) -> Result<MessageOutcome<'a>, MessageDrop> {
        let neighbour = Iid::of_addr(from);
        match code {
            code::DIS => {
                let dis = Dis::parse(body)?;
                check_neighbour(from)?;
                self.on_dis(neighbour, to_all, &dis, now)?;
            }
            code::DIO => {
                let dio = Dio::parse(body)?;
                check_neighbour(from)?;
                self.on_dio(neighbour, to_all, &dio, now, rng)?;
            }
            code::DAO if cfg!(feature = "root") => {
                let dao = Dao::parse(body)?;
                self.on_dao(&dao)?;
                return Ok(MessageOutcome::Dao(dao));
            }
            code::DAO_ACK => {
                let ack = DaoAck::parse(body)?;
                self.on_dao_ack(from, &ack, now, rng)?;
            }
            code => return Err(ParseError::of_code(code).into()),
        }
        Ok(MessageOutcome::Done)
    }
}

/// DIS and DIO come from a link-local address (RFC 6550 §6.2, §6.3).
fn check_neighbour(from: &Ipv6Addr) -> Result<(), MessageDrop> {
    match is_link_local(from) {
        true => Ok(()),
        false => Err(MessageDrop::BadSource),
    }
}
