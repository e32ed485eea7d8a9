//! `motet-update` from outside: images of imgtool, power cuts, requests.

mod conversation;
mod cuts;
mod fetching;
mod flash;
mod images;
mod requests;
