//! The bearer token of `/firmware`, from a file.

use std::path::Path;

use crate::{error::Error, files};

/// Reads a token: one line, of characters that HTTP lets a token have.
///
/// # Errors
/// [`Error::Input`] for a file that cannot be read, or that has no such line.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, Error> {
    let content = files::read(path)?;
    let token = content.trim_ascii();
    let is_token = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(byte);
    if token.is_empty() || token.len() > TOKEN_LEN_MAX || !token.iter().all(is_token) {
        return Err(Error::input(format!(
            "{} has no token: write one line of up to {TOKEN_LEN_MAX} letters, digits and -._~+/= (RFC 6750)",
            path.display()
        )));
    }
    Ok(token.to_vec())
}

/// Characters of a token, so that a head of 1,024 bytes has room for it.
const TOKEN_LEN_MAX: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_one_line_of_its_characters() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let said = |text: &[u8]| {
            std::fs::write(&path, text).unwrap();
            read(&path).ok()
        };
        assert_eq!(said(b"aZ09-._~+/=\n"), Some(b"aZ09-._~+/=".to_vec()));
        let long = [b'a'; 257];
        for wrong in [&b""[..], b"\n", b"two words", b"two\nlines", &long] {
            assert_eq!(said(wrong), None);
        }
    }
}
