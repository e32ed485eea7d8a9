//! What a linked image holds: bytes of flash, bytes of RAM, the words of a static.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use object::{Object, ObjectSection, ObjectSymbol, SectionKind};

/// An ELF executable for a device.
pub(crate) struct Image {
    bytes: Vec<u8>,
}

impl Image {
    /// Reads the file.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok(Self { bytes })
    }

    /// The parsed file.
    pub(crate) fn elf(&self) -> Result<object::File<'_>> {
        object::File::parse(&*self.bytes).context("the linker wrote no ELF file")
    }

    /// Code, constants and the initial values of `.data`: what the device stores.
    pub(crate) fn flash_bytes(&self) -> Result<u32> {
        self.sum(&[
            SectionKind::Text,
            SectionKind::ReadOnlyData,
            SectionKind::ReadOnlyString,
            SectionKind::Data,
        ])
    }

    /// Code and constants alone.
    pub(crate) fn code_bytes(&self) -> Result<u32> {
        self.sum(&[
            SectionKind::Text,
            SectionKind::ReadOnlyData,
            SectionKind::ReadOnlyString,
        ])
    }

    /// What static RAM holds at first, a copy of which is in flash.
    pub(crate) fn data_bytes(&self) -> Result<u32> {
        self.sum(&[SectionKind::Data])
    }

    /// Static RAM: `.data`, `.bss` and what is never initialised; not the call stack.
    pub(crate) fn ram_bytes(&self) -> Result<u32> {
        self.sum(&[SectionKind::Data, SectionKind::UninitializedData])
    }

    /// The 32-bit words of the static called `name`.
    pub(crate) fn words(&self, name: &str) -> Result<Vec<u32>> {
        let elf = self.elf()?;
        let symbol = elf
            .symbol_by_name(name)
            .with_context(|| format!("the image has no symbol {name}"))?;
        let section = elf.section_by_index(
            symbol
                .section_index()
                .with_context(|| format!("{name} lies in no section"))?,
        )?;
        let data = section
            .data_range(symbol.address(), symbol.size())?
            .with_context(|| format!("{name} has no bytes in the image"))?;
        Ok(data
            .as_chunks()
            .0
            .iter()
            .copied()
            .map(u32::from_le_bytes)
            .collect())
    }

    /// Bytes of the variable called `name`.
    pub(crate) fn symbol_bytes(&self, name: &str) -> Result<u32> {
        let symbol = self.elf()?.symbol_by_name(name).map(|found| found.size());
        let bytes = symbol.with_context(|| format!("the image has no symbol {name}"))?;
        u32::try_from(bytes).context("the variable is larger than its address space")
    }

    fn sum(&self, kinds: &[SectionKind]) -> Result<u32> {
        let total: u64 = self
            .elf()?
            .sections()
            .filter(|section| kinds.contains(&section.kind()))
            .map(|section| section.size())
            .sum();
        u32::try_from(total).context("the image is larger than its address space")
    }
}
