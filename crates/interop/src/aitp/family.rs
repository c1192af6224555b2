//! Which capability a `$schema` names, in both families of URLs and in any version.

use serde::{Deserialize, Serialize};

/// The `$schema` of our own messages about requests: decline, cancel, error, expire.
pub const REQUESTS: &str = "https://loomline.dev/aitp/requests/v1.0.0/schema.json";

/// The URLs of the site's documents: `…/aitp-02-decisions/v1.0.0/schema.json`.
const DOCUMENTS: &str = "https://aitp.dev/capabilities/";
/// The URLs that NEAR AI wrote: `…/decisions/schema.json`.
const SHORT: &str = "https://aitp.dev/v1/";
/// The prefix of our own URLs.
const OURS: &str = "https://loomline.dev/aitp/";

/// A capability whose messages are read here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Family {
    /// AITP-01.
    #[serde(rename = "aitp-01-payments")]
    Payments,
    /// AITP-02.
    #[serde(rename = "aitp-02-decisions")]
    Decisions,
    /// AITP-03.
    #[serde(rename = "aitp-03-data-request")]
    DataRequest,
    /// AITP-04.
    #[serde(rename = "aitp-04-near-wallet")]
    NearWallet,
    /// AITP-05.
    #[serde(rename = "aitp-05-evm-wallet")]
    EvmWallet,
    /// Ours: what AITP has no messages for.
    #[serde(rename = "requests")]
    Requests,
}

impl Family {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Payments,
        Self::Decisions,
        Self::DataRequest,
        Self::NearWallet,
        Self::EvmWallet,
        Self::Requests,
    ];

    /// The name in its URL.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Payments => "aitp-01-payments",
            Self::Decisions => "aitp-02-decisions",
            Self::DataRequest => "aitp-03-data-request",
            Self::NearWallet => "aitp-04-near-wallet",
            Self::EvmWallet => "aitp-05-evm-wallet",
            Self::Requests => "requests",
        }
    }

    /// The name in the short URLs.
    const fn short_name(self) -> &'static str {
        match self {
            Self::Payments => "payments",
            Self::Decisions => "decisions",
            Self::DataRequest => "data",
            Self::NearWallet => "near-wallet",
            Self::EvmWallet => "evm-wallet",
            Self::Requests => "requests",
        }
    }

    /// The URL of this version of it.
    pub fn url(self, version: FamilyVersion) -> String {
        let base = if self == Self::Requests {
            OURS
        } else {
            DOCUMENTS
        };
        format!("{base}{}/v{version}/schema.json", self.name())
    }

    /// The capability of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|family| family.name() == name)
    }
}

/// A version in a `$schema`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct FamilyVersion {
    /// Another one is another language.
    pub major: u32,
    /// A higher one may have more fields.
    pub minor: u32,
    /// Says nothing about messages.
    pub patch: u32,
}

impl FamilyVersion {
    /// The one version that was ever published.
    pub const V1: Self = Self {
        major: 1,
        minor: 0,
        patch: 0,
    };

    /// Reads `X.Y.Z`, with nothing before or after.
    pub fn read(text: &str) -> Option<Self> {
        let mut numbers = text.splitn(3, '.').map(|number| {
            let plain = number.bytes().all(|byte| byte.is_ascii_digit());
            plain.then(|| number.parse().ok()).flatten()
        });
        let version = Self {
            major: numbers.next()??,
            minor: numbers.next()??,
            patch: numbers.next()??,
        };
        Some(version)
    }

    /// Whether messages of this version are read here: those of 1, and of the drafts before it.
    pub const fn is_known(self) -> bool {
        self.major <= 1
    }

    /// Whether one who declared this version can read messages of the other.
    pub const fn reads(self, other: Self) -> bool {
        self.major == other.major || (self.is_known() && other.is_known())
    }
}

impl std::fmt::Display for FamilyVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

impl From<FamilyVersion> for String {
    fn from(version: FamilyVersion) -> Self {
        version.to_string()
    }
}

impl TryFrom<String> for FamilyVersion {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::read(&text).ok_or("a version is three numbers: 1.0.0")
    }
}

/// The capability and the version that a `$schema` names; nothing for one that is not known here.
///
/// ```
/// use loomline_interop::aitp::{Family, FamilyVersion, capability_of};
///
/// let decisions = Some((Family::Decisions, FamilyVersion::V1));
/// assert_eq!(capability_of("https://aitp.dev/v1/decisions/schema.json"), decisions);
/// assert_eq!(capability_of("https://aitp.dev/capabilities/aitp-02-decisions/v1.0.0/schema.json"), decisions);
/// assert_eq!(capability_of("https://example.com/poll.json"), None);
/// ```
pub fn capability_of(url: &str) -> Option<(Family, FamilyVersion)> {
    if let Some(rest) = url.strip_prefix(SHORT) {
        let name = rest.strip_suffix("/schema.json")?;
        let family = Family::ALL.into_iter().find(|family| {
            *family != Family::Requests
                && (family.short_name() == name || Family::from_name(name) == Some(*family))
        });
        return family.map(|family| (family, FamilyVersion::V1));
    }
    let (rest, ours) = match url.strip_prefix(OURS) {
        Some(rest) => (rest, true),
        None => (url.strip_prefix(DOCUMENTS)?, false),
    };
    let (name, version) = rest.strip_suffix("/schema.json")?.split_once("/v")?;
    let family = Family::from_name(name)?;
    let version = FamilyVersion::read(version)?;
    ((family == Family::Requests) == ours).then_some((family, version))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_families_of_urls_name_the_same_capabilities() {
        for family in Family::ALL {
            let version = FamilyVersion::read("1.2.3").unwrap();
            let url = family.url(version);
            assert_eq!(capability_of(&url), Some((family, version)), "{url}");
        }
        let short = "https://aitp.dev/v1/data/schema.json";
        let found = Some((Family::DataRequest, FamilyVersion::V1));
        assert_eq!(capability_of(short), found);
        assert_eq!(
            capability_of(REQUESTS),
            Some((Family::Requests, FamilyVersion::V1))
        );
    }

    #[test]
    fn other_urls_name_nothing() {
        for url in [
            "",
            "https://aitp.dev/v1//schema.json",
            "https://aitp.dev/v1/requests/schema.json",
            "https://aitp.dev/capabilities/aitp-06-solana-wallet/v1.0.0/schema.json",
            "https://aitp.dev/capabilities/aitp-02-decisions/v1.0/schema.json",
            "https://aitp.dev/capabilities/aitp-02-decisions/v1.0.0.0/schema.json",
            "https://aitp.dev/capabilities/aitp-02-decisions/v+1.0.0/schema.json",
            "https://aitp.dev/capabilities/requests/v1.0.0/schema.json",
            "https://aitp.dev.example.com/v1/decisions/schema.json",
        ] {
            assert_eq!(capability_of(url), None, "{url}");
        }
    }

    #[test]
    fn drafts_count_as_the_first_version() {
        let version = |text| FamilyVersion::read(text).unwrap();
        assert!(version("0.1.0").is_known() && version("1.7.0").is_known());
        assert!(!version("2.0.0").is_known());
        assert!(version("0.1.0").reads(version("1.0.0")));
        assert!(!version("1.0.0").reads(version("2.0.0")));
        assert!(version("2.1.0").reads(version("2.0.0")));
    }
}
