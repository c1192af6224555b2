//! The media type of a file, from its first bytes.

/// The media type of documents that models read.
pub(super) const PDF: &str = "application/pdf";
const TEXT: &str = "text/plain";
/// The media type of unknown content.
pub(super) const UNKNOWN: &str = "application/octet-stream";

/// First bytes of files, and the media types that they indicate.
const MAGIC: &[(&[u8], &str)] = &[
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", PDF),
    (b"PK\x03\x04", "application/zip"),
    (b"PK\x05\x06", "application/zip"),
    (b"\x1f\x8b", "application/gzip"),
    (b"OggS", "audio/ogg"),
    (b"fLaC", "audio/flac"),
    (b"ID3", "audio/mpeg"),
    (b"\xff\xfb", "audio/mpeg"),
    (b"\xff\xf3", "audio/mpeg"),
    (b"\xff\xf2", "audio/mpeg"),
];

/// File extensions and their media types. Others are not checked, because text files have many
/// extensions.
const NAMES: &[(&str, &str)] = &[
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("gif", "image/gif"),
    ("webp", "image/webp"),
    ("pdf", PDF),
    ("zip", "application/zip"),
    ("docx", "application/zip"),
    ("xlsx", "application/zip"),
    ("pptx", "application/zip"),
    ("gz", "application/gzip"),
    ("wav", "audio/wav"),
    ("ogg", "audio/ogg"),
    ("flac", "audio/flac"),
];

/// The media type of a file's content: `text/plain` for any other UTF-8 without control characters.
pub(super) fn media_type(content: &[u8]) -> &'static str {
    if let Some((_, found)) = MAGIC.iter().find(|(magic, _)| content.starts_with(magic)) {
        return found;
    }
    let kind = content.get(8..12);
    match (content.starts_with(b"RIFF"), kind) {
        (true, Some(b"WEBP")) => return "image/webp",
        (true, Some(b"WAVE")) => return "audio/wav",
        _ => {}
    }
    if content.get(4..8) == Some(b"ftyp") {
        return "video/mp4";
    }
    match std::str::from_utf8(content) {
        Ok(text) if !text.chars().any(is_foreign) => TEXT,
        _ => UNKNOWN,
    }
}

/// Whether a character is a control character that text files do not contain.
fn is_foreign(char: char) -> bool {
    char.is_control() && !matches!(char, '\t' | '\n' | '\r' | '\u{c}' | '\u{1b}')
}

/// The media type of a file name's extension, if the extension is known.
pub(super) fn promised(filename: &str) -> Option<&'static str> {
    let (_, end) = filename.rsplit_once('.')?;
    let mut names = NAMES.iter();
    let found = names.find(|(name, _)| end.eq_ignore_ascii_case(name));
    found.map(|(_, promised)| *promised)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_content_is_what_it_begins_with() {
        for (content, expected) in [
            (&b"\x89PNG\r\n\x1a\n...."[..], "image/png"),
            (b"\xff\xd8\xff\xe0", "image/jpeg"),
            (b"RIFF\0\0\0\0WEBPVP8 ", "image/webp"),
            (b"RIFF\0\0\0\0WAVEfmt ", "audio/wav"),
            (b"RIFF", TEXT),
            (b"%PDF-1.7", PDF),
            (b"PK\x03\x04...", "application/zip"),
            (b"\0\0\0\x18ftypmp42", "video/mp4"),
            (b"", TEXT),
            ("gr\u{fc}n\n".as_bytes(), TEXT),
            (b"a\0b", UNKNOWN),
            (b"\xfe\xff", UNKNOWN),
        ] {
            assert_eq!(media_type(content), expected, "{content:?}");
        }
    }

    #[test]
    fn a_name_promises_by_its_end_in_any_case() {
        assert_eq!(promised("a.b.PNG"), Some("image/png"));
        assert_eq!(promised("notes.docx"), Some("application/zip"));
        assert_eq!(promised("notes.txt"), None);
        assert_eq!(promised("Makefile"), None);
        assert_eq!(promised("model.safetensors"), None);
    }
}
