//! The flash of a client and a server above another stack's driver, with Motet and with
//! embassy-net.

use anyhow::Result;

use crate::firmware::build_over;
use crate::image::Image;
use crate::workspace::Workspace;

/// Flash of both images, bytes.
pub(crate) struct OverText {
    pub(crate) motet: u32,
    pub(crate) embassy_net: u32,
}

impl OverText {
    pub(crate) fn measure(workspace: &Workspace) -> Result<Self> {
        let [motet, embassy_net] = build_over(workspace)?;
        Ok(Self {
            motet: Image::open(&motet)?.flash_bytes()?,
            embassy_net: Image::open(&embassy_net)?.flash_bytes()?,
        })
    }

    /// Whether the program keeps to its limit, in a line.
    pub(crate) fn verdict(&self, limit: u32) -> String {
        let what = "A client and a server above another stack take";
        let takes = against(what, self.motet, limit);
        format!("{takes} (with embassy-net: {})\n", self.embassy_net)
    }
}

/// A figure and its limit.
pub(crate) fn against(what: &str, bytes: u32, limit: u32) -> String {
    match bytes.checked_sub(limit) {
        None | Some(0) => format!("{what} {bytes} B, of {limit}"),
        Some(above) => format!("{what} {bytes} B, {above} more than {limit}"),
    }
}
