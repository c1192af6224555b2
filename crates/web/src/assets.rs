//! The files that pages load: script, style and icon.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};

/// Number of bytes of the hash in an asset's path.
const HASH_BYTES: usize = 9;

/// A file that pages load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asset {
    /// Its name in the path.
    pub name: &'static str,
    /// Its media type.
    pub media_type: &'static str,
    /// Its bytes.
    pub bytes: &'static [u8],
}

/// The assets, under a path with a hash of all their bytes: browsers keep them for a year.
#[derive(Clone, Debug)]
pub struct Assets {
    hash: String,
}

const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";

macro_rules! embedded {
    ($($name:literal: $media_type:expr),* $(,)?) => {
        &[$(Asset {
            name: $name,
            media_type: $media_type,
            bytes: include_bytes!(concat!("../assets/", $name)),
        }),*]
    };
}

const EMBEDDED: &[Asset] = embedded! {
    "bearer.js": SCRIPT,
    "composer.js": SCRIPT,
    "console.js": SCRIPT,
    "content.js": SCRIPT,
    "dom.js": SCRIPT,
    "embed.js": SCRIPT,
    "embedded.js": SCRIPT,
    "forms.js": SCRIPT,
    "inbox.js": SCRIPT,
    "live.js": SCRIPT,
    "log.js": SCRIPT,
    "page.js": SCRIPT,
    "patches.js": SCRIPT,
    "stream.js": SCRIPT,
    "transport.js": SCRIPT,
    "style.css": STYLE,
    "console.css": STYLE,
    "icon.svg": "image/svg+xml",
};

/// The modules that every page loads, so that browsers fetch them at once.
pub(crate) const MODULES: &[&str] = &[
    "composer.js",
    "content.js",
    "dom.js",
    "forms.js",
    "live.js",
    "log.js",
    "patches.js",
    "stream.js",
    "transport.js",
];

impl Default for Assets {
    fn default() -> Self {
        let mut hash = Sha256::new();
        for asset in EMBEDDED {
            hash.update(asset.bytes);
        }
        let hash = hash.finalize();
        let short = hash.get(..HASH_BYTES).unwrap_or(&hash);
        Self {
            hash: URL_SAFE_NO_PAD.encode(short),
        }
    }
}

impl Assets {
    /// All assets.
    pub fn all(&self) -> &'static [Asset] {
        EMBEDDED
    }

    /// The path of an asset.
    pub fn path(&self, name: &str) -> String {
        format!("/assets/{}/{name}", self.hash)
    }

    /// The asset with this name, if the hash is that of the assets.
    pub fn find(&self, hash: &str, name: &str) -> Option<&'static Asset> {
        self.named(name).filter(|_| hash == self.hash)
    }

    /// The asset with this name.
    pub fn named(&self, name: &str) -> Option<&'static Asset> {
        EMBEDDED.iter().find(|asset| asset.name == name)
    }
}
