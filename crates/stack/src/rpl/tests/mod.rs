//! RPL alone: whole meshes in virtual time, single nodes and what strangers send them.

mod bounds;
mod forming;
mod lab;
mod leaves;
mod messages;
mod returning;
mod versions;
