//! What a part of the stack adds to an image: built with and without it, and compared.

use std::collections::BTreeMap;

use anyhow::Result;

use crate::composition::{code_by, file_of};
use crate::firmware::{
    BLE_COST, RPL_COST, SECURITY_COST, SLEEPY_COST, TCP_COST, THREAD_COST, build_with_advertise,
    build_with_ble, build_with_copies, build_with_leaves, build_with_plain_rpl,
    build_with_rotation, build_with_rpl, build_with_security, build_with_sleepy,
    build_with_small_tcp, build_with_tcple, build_with_thread, build_without_ble,
    build_without_rpl, build_without_security, build_without_sleepy, build_without_tcp,
    build_without_thread, image_path,
};
use crate::image::Image;
use crate::workspace::Workspace;

/// What the image with TCP has more than the one without: in all, and by file. After
/// [`crate::firmware::build_minimal_node`].
pub(super) fn tcp_cost(workspace: &Workspace) -> Result<(u32, BTreeMap<String, i64>)> {
    let path = image_path(workspace, TCP_COST);
    let read = || anyhow::Ok((Image::open(&path)?.code_bytes()?, code_by(file_of, &path)?));
    let (with, code) = read()?;
    build_without_tcp(workspace)?;
    let (without, code_without) = read()?;
    Ok((with.saturating_sub(without), difference(code, code_without)))
}

/// What an image with a feature has more than the one without.
pub(super) struct Cost {
    pub(super) text_bytes: u32,
    pub(super) ram_bytes: u32,
    /// By file.
    pub(super) code: BTreeMap<String, i64>,
    /// Lines of it that can panic.
    pub(super) panics: Vec<String>,
}

impl Cost {
    /// Of an image that is built by `without`, and then by `with`, which gives the lines that can
    /// panic.
    fn of(
        workspace: &Workspace,
        image: &str,
        without: fn(&Workspace) -> Result<()>,
        with: fn(&Workspace) -> Result<Vec<String>>,
    ) -> Result<Self> {
        let path = image_path(workspace, image);
        let read = || {
            let image = Image::open(&path)?;
            anyhow::Ok((
                [image.code_bytes()?, image.ram_bytes()?],
                code_by(file_of, &path)?,
            ))
        };
        without(workspace)?;
        let (less, code_without) = read()?;
        let panics = with(workspace)?;
        let (more, code) = read()?;
        Ok(Self {
            text_bytes: more[0].saturating_sub(less[0]),
            ram_bytes: more[1].saturating_sub(less[1]),
            code: difference(code, code_without),
            panics,
        })
    }
}

/// After [`tcp_cost`].
pub(super) fn small_tcp_cost(workspace: &Workspace) -> Result<Cost> {
    Cost::of(workspace, TCP_COST, build_without_tcp, build_with_small_tcp)
}

pub(super) fn rpl_cost(workspace: &Workspace) -> Result<Cost> {
    Cost::of(workspace, RPL_COST, build_without_rpl, build_with_rpl)
}

/// After [`rpl_cost`].
pub(super) fn plain_rpl_cost(workspace: &Workspace) -> Result<Cost> {
    let without = |workspace: &Workspace| build_with_rpl(workspace).map(drop);
    Cost::of(workspace, RPL_COST, without, build_with_plain_rpl)
}

/// After [`rpl_cost`].
pub(super) fn advertise_cost(workspace: &Workspace) -> Result<Cost> {
    let without = |workspace: &Workspace| build_with_rpl(workspace).map(drop);
    Cost::of(workspace, RPL_COST, without, build_with_advertise)
}

/// After [`advertise_cost`]: neighbours without RPL need advertisements.
pub(super) fn leaves_cost(workspace: &Workspace) -> Result<Cost> {
    let without = |workspace: &Workspace| build_with_advertise(workspace).map(drop);
    Cost::of(workspace, RPL_COST, without, build_with_leaves)
}

pub(super) fn ble_cost(workspace: &Workspace) -> Result<Cost> {
    Cost::of(workspace, BLE_COST, build_without_ble, build_with_ble)
}

pub(super) fn tcple_cost(workspace: &Workspace) -> Result<Cost> {
    let without = |workspace: &Workspace| build_with_ble(workspace).map(drop);
    Cost::of(workspace, BLE_COST, without, build_with_tcple)
}

pub(super) fn security_cost(workspace: &Workspace) -> Result<Cost> {
    Cost::of(
        workspace,
        SECURITY_COST,
        build_without_security,
        build_with_security,
    )
}

/// After [`security_cost`].
pub(super) fn rotation_cost(workspace: &Workspace) -> Result<Cost> {
    let without = |workspace: &Workspace| build_with_security(workspace).map(drop);
    Cost::of(workspace, SECURITY_COST, without, build_with_rotation)
}

pub(super) fn sleepy_cost(workspace: &Workspace) -> Result<Cost> {
    Cost::of(
        workspace,
        SLEEPY_COST,
        build_without_sleepy,
        build_with_sleepy,
    )
}

/// After [`sleepy_cost`].
pub(super) fn copies_cost(workspace: &Workspace) -> Result<Cost> {
    let without = |workspace: &Workspace| build_with_sleepy(workspace).map(drop);
    Cost::of(workspace, SLEEPY_COST, without, build_with_copies)
}

pub(super) fn thread_cost(workspace: &Workspace) -> Result<Cost> {
    Cost::of(
        workspace,
        THREAD_COST,
        build_without_thread,
        build_with_thread,
    )
}

/// What is in `code` more than in `without`, by file; less is negative.
fn difference(
    mut code: BTreeMap<String, i64>,
    without: BTreeMap<String, i64>,
) -> BTreeMap<String, i64> {
    for (file, bytes) in without {
        *code.entry(file).or_insert(0) -= bytes;
    }
    code.retain(|_, bytes| *bytes != 0);
    code
}
