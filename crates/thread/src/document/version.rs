//! The versions of the protocol.

/// A protocol version, ordered by release: the numbering restarted after 2.0.0.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// 1.0.0, a flat list of actions.
    V1_0_0,
    /// 2.0.0, turns, messages and parts.
    V2_0_0,
    /// 0.0.3, relationships and references to content.
    V0_0_3,
    /// 0.0.4, complete cycles.
    V0_0_4,
    /// An unknown version, which counts as newer than all known ones.
    Other(String),
}

impl Version {
    /// The version new documents are written in.
    pub const NEWEST: Self = Self::V0_0_4;

    /// The known versions, in order of release.
    pub const KNOWN: [Self; 4] = [Self::V1_0_0, Self::V2_0_0, Self::V0_0_3, Self::V0_0_4];

    /// The version as a document spells it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::V1_0_0 => "1.0.0",
            Self::V2_0_0 => "2.0.0",
            Self::V0_0_3 => "0.0.3",
            Self::V0_0_4 => "0.0.4",
            Self::Other(version) => version,
        }
    }
}

impl From<&str> for Version {
    fn from(version: &str) -> Self {
        match version {
            "1.0.0" => Self::V1_0_0,
            "2.0.0" => Self::V2_0_0,
            "0.0.3" => Self::V0_0_3,
            "0.0.4" => Self::V0_0_4,
            _ => Self::Other(version.to_owned()),
        }
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_as_they_came_out() {
        let order = ["1.0.0", "2.0.0", "0.0.3", "0.0.4", "0.0.5"].map(Version::from);
        assert!(order.is_sorted());
        assert_eq!(order.map(|version| version.to_string())[4], "0.0.5");
    }
}
