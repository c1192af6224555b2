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
    all: Vec<Asset>,
}

const SCRIPT: &str = "text/javascript; charset=utf-8";
const EMBEDDED: [(&str, &str, &[u8]); 3] = [
    ("page.js", SCRIPT, include_bytes!("../assets/page.js")),
    (
        "style.css",
        "text/css; charset=utf-8",
        include_bytes!("../assets/style.css"),
    ),
    (
        "icon.svg",
        "image/svg+xml",
        include_bytes!("../assets/icon.svg"),
    ),
];

impl Default for Assets {
    fn default() -> Self {
        let all: Vec<Asset> = EMBEDDED
            .into_iter()
            .map(|(name, media_type, bytes)| Asset {
                name,
                media_type,
                bytes,
            })
            .collect();
        let mut hash = Sha256::new();
        for asset in &all {
            hash.update(asset.bytes);
        }
        let hash = hash.finalize();
        let short = hash.get(..HASH_BYTES).unwrap_or(&hash);
        Self {
            hash: URL_SAFE_NO_PAD.encode(short),
            all,
        }
    }
}

impl Assets {
    /// The path of an asset.
    pub fn path(&self, name: &str) -> String {
        format!("/assets/{}/{name}", self.hash)
    }

    /// The asset with this name, if the hash is that of the assets.
    pub fn find(&self, hash: &str, name: &str) -> Option<&Asset> {
        let mut all = self.all.iter().filter(|_| hash == self.hash);
        all.find(|asset| asset.name == name)
    }
}
