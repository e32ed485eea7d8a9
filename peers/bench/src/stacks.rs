//! Each TCP as an [`Endpoint`](crate::endpoint::Endpoint).

pub mod lwip;
pub mod motet;
pub mod smoltcp;
pub mod tcplp;
